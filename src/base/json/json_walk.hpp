// Walks over a JSON text to build its nodes and refuses everything that parsers interpret differently (json.hpp).
// simdjson has checked the grammar before; the walk checks it again to find the position of an error, which simdjson
// does not report.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"
#include "base/result.hpp"

namespace muniment::json {

// Clears `nodes` and fills it with the text's values, parents before children.
Status walk(std::string_view text, std::size_t depth_max, std::vector<Node>& nodes);

// Resolves the escapes of an accepted string, given the text between its quotes.
std::string unescape(std::string_view inside);

// Appends the string literal of `text`: the shortest escapes, invalid UTF-8 as U+FFFD.
void append_quoted(std::string& out, std::string_view text);

}  // namespace muniment::json
