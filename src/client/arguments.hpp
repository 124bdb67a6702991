// Converts command line arguments to members of a request.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"
#include "base/result.hpp"

namespace muniment::cli {

// Returns the JSON text on one line, with line feeds between tokens as blanks. Errors: invalid_argument.
Result<std::string> json_line(std::string_view text);

// Returns {"k":"v", …} for words of the form k=v.
Result<std::string> labels_json(const std::vector<std::string>& words);

// Adds the member asof unless the option is empty: digits are the seq of an event, other text is a time.
void add_asof(json::Writer& params, const std::string& asof);

// Returns the question, without white space at its end: `text`, or standard input if `text` is "-". Errors:
// invalid_argument if standard input is empty; too_large.
Result<std::string> question_text(const std::string& text);

// Reports on standard error that a list was cut at its limit: "the newest 20 runs; there are more: -n 0 shows all".
void say_there_are_more(std::string_view which, std::size_t limit, std::string_view things);

// Returns an absolute path, since the daemon has a different working directory.
Result<std::string> absolute_path(const std::string& path);

}  // namespace muniment::cli
