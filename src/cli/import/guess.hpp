// What a record that does not fit its format looks like: said in the error, so that the right --format is found.
#pragma once

#include <string>
#include <string_view>

#include "base/json/json.hpp"
#include "base/result.hpp"

namespace muniment::cli {

// The name of the format, or empty.
std::string_view guessed_format(const json::Value& record);

// "; it looks like a record of tau-bench (--format tau-bench)", or empty.
std::string looks_like(const json::Value& record);
// The same for bytes that may not be JSON.
std::string text_looks_like(std::string_view text);
// Of a file that is one record, or has one a line: the first of them.
std::string first_record_looks_like(std::string_view text);

// What the first records of the file look like. Errors: invalid_argument where they look like nothing that is known;
// those of reading it.
Result<std::string_view> sniffed_format(const std::string& path);

// invalid_argument where none of the first records of the file looks like this format's.
Status refuse_other_format(const std::string& path, std::string_view format);

}  // namespace muniment::cli
