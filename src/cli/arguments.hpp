// What people type, as what a request holds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"
#include "base/result.hpp"

namespace muniment::cli {

// JSON text on one line: the line feeds between its tokens are blanks. Errors: invalid_argument.
Result<std::string> json_line(std::string_view text);

// {"k":"v", …} of words k=v.
Result<std::string> labels_json(const std::vector<std::string>& words);

// The member asof, unless there is nothing to add: digits are an event's seq, the rest is a time.
void add_asof(json::Writer& params, const std::string& asof);

// On standard error, where a list ends at its limit and not at its end: "the newest 20 runs; there are more: -n 0 shows
// all".
void say_there_are_more(std::string_view which, std::size_t limit, std::string_view things);

// The daemon has another working folder.
Result<std::string> absolute_path(const std::string& path);

}  // namespace muniment::cli
