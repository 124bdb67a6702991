#include "base/config/toml_depth.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace muniment {
namespace {

// Returns the position behind the string that begins at `at`. An unclosed string ends with the text.
std::size_t behind_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string_view three = text.substr(at, 3);
  const bool many = three.size() == 3 && three[1] == quote && three[2] == quote;
  const std::string_view end = many ? three : three.substr(0, 1);
  for (at += end.size(); at < text.size(); ++at) {
    if (text[at] == '\\' && quote == '"') {
      ++at;
    } else if (text.substr(at).starts_with(end)) {
      at += end.size();
      // A string of several lines may end with one or two quotes of its own.
      for (int own = 0; many && own < 2 && at < text.size() && text[at] == quote; ++own) ++at;
      return at;
    } else if (text[at] == '\n' && !many) {
      return at;
    }
  }
  return text.size();
}

}  // namespace

Status check_toml_depth(std::string_view text) {
  int parts = 1;  // of the current key
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      at = behind_string(text, at);
      continue;
    }
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (c == '.' && ++parts > toml_key_parts_max)
      return Error(Errc::invalid_argument,
                   fmt::format("line {}: the key has more than {} parts",
                               1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'),
                               toml_key_parts_max));
    if (std::string_view("\n=,{}[]").find(c) != std::string_view::npos) parts = 1;
    ++at;
  }
  return success();
}

}  // namespace muniment
