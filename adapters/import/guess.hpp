// Detects the format of records; errors about a wrong format suggest the right --format.
#pragma once

#include <string>
#include <string_view>

#include "base/json/json.hpp"
#include "base/result.hpp"

namespace muniment::cli {

// Returns the name of the format, or empty.
std::string_view guessed_format(const json::Value& record);

// Returns "; it looks like a record of tau-bench (--format tau-bench)", or empty.
std::string looks_like(const json::Value& record);
// The same for bytes that may not be JSON.
std::string text_looks_like(std::string_view text);

// Detects the format of the file from its first records. Errors: invalid_argument if the format is
// unknown; read errors.
Result<std::string_view> sniffed_format(const std::string& path);

// Errors: invalid_argument if none of the first records of the file has this format.
Status refuse_other_format(const std::string& path, std::string_view format);

}  // namespace muniment::cli
