// Recognises kinds of lines by their beginnings and ends.
#include "evidence/completion/text/line_kinds.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "evidence/completion/text/facts.hpp"
#include "evidence/completion/text/words.hpp"

namespace muniment::evidence::completion {
namespace {

constexpr std::size_t rule_characters_min = 3;
constexpr std::size_t prompt_bytes_max = 24;

}  // namespace

// Returns whether the line belongs to a runner's frame: "===== FAILURES =====", "-----", "platform linux -- Python
// 3.11".
bool is_frame(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return true;
  line.remove_prefix(begin);
  const char c = line[0];
  const bool rule = (c == '=' || c == '-' || c == '_' || c == '~' || c == '*' || c == '#') &&
                    line.size() >= rule_characters_min && line[1] == c && line[2] == c && trimmed(line).back() == c;
  if (rule) return true;
  if (c != 'p' && c != 'r' && c != 'c') return false;  // true of most lines
  constexpr std::array<std::string_view, 6> names{
      "platform ", "plugins:", "rootdir:", "cachedir:", "configfile:", "collected "};
  return std::ranges::any_of(names, [&](std::string_view name) { return line.starts_with(name); });
}

// Returns whether the line states the outcome of one test, or one step of a build.
bool is_status_line(std::string_view line) {
  while (!line.empty() && is_blank(line.back())) line.remove_suffix(1);
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return false;
  const std::string_view body = line.substr(begin);
  constexpr std::array<std::string_view, 10> beginnings{
      "ok ", "not ok ", "PASS", "FAIL", "SKIP", "[ ", "--- ", "\xE2\x9C\x93", "\xE2\x9C\x94", "\xE2\x9C\x96"};
  constexpr std::array<std::string_view, 9> ends{" ok",    " PASSED", " FAILED", " SKIPPED", " Passed",
                                                 " ERROR", "... ok",  " sec",    "%]"};
  for (const std::string_view mark : beginnings) {
    if (body[0] == mark[0] && body.starts_with(mark) && body.size() > mark.size() + 2) return true;
  }
  for (const std::string_view mark : ends) {
    if (line.back() == mark.back() && line.ends_with(mark) && body.size() > mark.size() + 3) return true;
  }
  return false;
}

// "[ 25%] Building C object": the progress of a build.
bool is_build_step(std::string_view line) {
  line = trimmed(line);
  if (line.size() < 2 || line[0] != '[') return false;
  line = trimmed(line.substr(1));
  return !line.empty() && is_digit(line[0]);
}

// "- item", "* item", "[x] item", "name: value": a line that begins a new statement.
bool begins_item(std::string_view line) {
  line = trimmed(line);
  if (line.size() < 3) return false;
  if ((line[0] == '-' || line[0] == '*') && is_blank(line[1])) return true;
  if (line[0] == '[' && line[2] == ']') return true;
  const std::size_t space = line.find(' ');  // a name is one word
  return space != std::string_view::npos && space > 0 && line[space - 1] == ':';
}

// A command line before its output: "ruff check src/app.py: …", "gofmt -l queue: …".
bool names_command(std::string_view line) {
  line = trimmed(line);
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos || space < 2 || space > word_bytes_max || line[0] < 'a' || line[0] > 'z')
    return false;
  std::uint32_t classes = 0;
  each_word(line.substr(0, space), [&](std::string_view word) { classes |= classes_of(word); });
  if ((classes & ~static_cast<std::uint32_t>(runner_name)) != 0) return false;
  std::string_view rest = line.substr(space + 1);
  const std::string_view first = rest.substr(0, rest.find(' '));
  rest.remove_prefix(std::min(first.size() + 1, rest.size()));
  const std::string_view second = rest.substr(0, rest.find(' '));
  const auto is_argument = [](std::string_view token) {
    return (token.size() >= 2 && token[0] == '-' && is_letter(token[1])) || token.find('/') != std::string_view::npos ||
           is_identifier(core_of(token));
  };
  return is_argument(first) || (is_argument(second) && position_of(first, [](char c) {
                                                         return byte_kind(c) != lower_byte && c != '-';
                                                       }) == first.size());
}

// A command after a prompt: "$ make", "sqlite> SELECT 1;", ">>> f(2)", "shop=# \d orders".
bool is_typed(std::string_view line) {
  const std::size_t end = line.find(' ');
  if (end == std::string_view::npos || end == 0 || end + 3 > line.size() || end > prompt_bytes_max) return false;
  const char last = line[end - 1];
  if (last != '$' && last != '>' && last != '#') return false;
  const std::string_view name = line.substr(0, end - 1);
  // "#", "##" and ">" begin a heading or a quotation.
  if (last != '$' && name != ">>" && std::none_of(name.begin(), name.end(), is_letter)) return false;
  return name.find_first_of("<[({\"'") == std::string_view::npos &&
         is_letter(lower(line[end + 1] == '\\' ? 'd' : line[end + 1]));
}

}  // namespace muniment::evidence::completion
