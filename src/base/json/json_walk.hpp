// The one walk over a JSON text that builds its nodes and refuses what parsers disagree about
// (json.hpp). simdjson has judged the grammar before; the walk checks it again as it goes along,
// so that it can name the place that simdjson only knows to be wrong.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"
#include "base/result.hpp"

namespace muniment::json {

// Fills `nodes` (emptied first) with the text's values, parents before children.
Status walk(std::string_view text, std::size_t depth_max, std::vector<Node>& nodes);

// What stands between the quotes of an accepted string, with its escapes resolved.
std::string unescape(std::string_view inside);

// Appends the string literal of `text`: the shortest escapes, invalid UTF-8 as U+FFFD.
void append_quoted(std::string& out, std::string_view text);

}  // namespace muniment::json
