// Recognises unfilled values, slots and words.
#include "evidence/completion/text/blanks.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "evidence/completion/text/facts.hpp"
#include "evidence/completion/text/words.hpp"

namespace muniment::evidence::completion {
namespace {

constexpr std::size_t field_name_bytes_max = 40;
constexpr std::size_t slot_bytes_max = 80;
constexpr std::size_t slot_words_max = 3;     // of a slot in two brackets: {{ test_output }}
constexpr std::size_t blank_bytes_max = 120;  // a longer value is not blank

bool is_upper_word(std::string_view word) {
  return std::all_of(word.begin(), word.end(), [](char c) { return (c >= 'A' && c <= 'Z') || c == '_' || c == ' '; });
}

// ___, ..., ???, ---, ###, or the ellipsis character.
bool is_rule(std::string_view value) {
  if (value == "\xE2\x80\xA6") return true;
  return value.size() >= 2 && std::string_view("_.?-#*~=xX").find(value[0]) != std::string_view::npos &&
         value.find_first_not_of(value[0]) == std::string_view::npos;
}

// Returns whether the text between brackets is the slot of a template.
bool is_slot(std::string_view inside, bool doubled) {
  inside = trimmed(inside);
  if (inside.size() < 2 || inside.size() > slot_bytes_max) return false;
  std::size_t words = 0, asking = 0, blank_words = 0;
  each_word(inside, [&](std::string_view word) {
    const std::uint32_t classes = classes_of(word);
    ++words;
    if ((classes & slot_word) != 0) ++asking;
    if ((classes & blank) != 0 || word == "pending") ++blank_words;
  });
  if (words == 0) return is_rule(inside) && (inside[0] == '_' || inside[0] == '?' || inside[0] == '.');
  if (blank_words > 0 && is_upper_word(inside)) return true;
  if (asking > 0 && words >= 2 && words <= 12) return true;
  return doubled && words <= slot_words_max;
}

constexpr std::array<std::array<std::string_view, 2>, 5> brackets{
    {{"{{", "}}"}, {"<<", ">>"}, {"<", ">"}, {"[", "]"}, {"(", ")"}}};

std::size_t slots_inside(std::string_view line) {
  std::size_t found = 0;
  const std::size_t item = line.find_first_not_of(" \t-*+");
  if (item != std::string_view::npos && line.substr(item).starts_with("[ ] ")) ++found;  // an unchecked item
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (byte_kind(c) != open_byte) continue;
    for (const auto& [open, close] : brackets) {
      if (open[0] != c || !line.substr(i).starts_with(open)) continue;
      const std::string_view window = line.substr(i + open.size(), slot_bytes_max);
      const std::size_t end = window.find(close);
      if (end == std::string_view::npos) continue;
      if (is_slot(window.substr(0, end), open.size() == 2)) {
        ++found;
        i += open.size() + end;
      }
      break;
    }
  }
  return found;
}

// The token without punctuation. Question marks and underscores stay, because a blank can consist of them.
std::string_view without_punctuation(std::string_view token) {
  const auto is_punctuation = [](char c) {
    return c < '0' ? c != '#' && c != '%' && c != '-'
                   : c == ':' || c == ';' || c == '[' || c == ']' || c == '`' || c >= '{' || c == '<' || c == '>';
  };
  while (!token.empty() && is_punctuation(token.front())) token.remove_prefix(1);
  while (!token.empty() && is_punctuation(token.back())) token.remove_suffix(1);
  return token;
}

// Returns whether the token is a placeholder for a count: N, XX, ##, ??, %d.
bool stands_for_number(std::string_view token) {
  if (token.empty() || token.size() > 4) return false;
  if (token == "%d" || token == "%s" || token == "%i" || token == "%u") return true;
  const char first = token[0];
  const bool letter = first == 'X' || first == 'Y' || first == 'N' || first == 'M';
  if (!letter && first != '?' && first != '#' && first != '_') return false;
  return token.find_first_not_of(first) == std::string_view::npos;
}

std::size_t blank_words_inside(std::string_view line) {
  std::size_t found = 0;
  std::string_view before;
  bool behind_number = false;
  for (std::size_t i = 0; i < line.size();) {
    while (i < line.size() && (is_blank(line[i]) || line[i] == '/')) ++i;
    const std::size_t begin = i;
    while (i < line.size() && !is_blank(line[i]) && line[i] != '/') ++i;
    std::string_view token = line.substr(begin, i - begin);
    token = without_punctuation(token);
    if (token.empty() || token.size() > word_bytes_max) {
      before = {};
      continue;
    }
    const bool may_be_open = token[0] == '_' || token[0] == '?' || token[0] == '%';
    if (may_be_open && token.size() >= 3 && token.find_first_not_of("_?%") == std::string_view::npos &&
        token.find("%%") == std::string_view::npos)
      ++found;
    // Skips the look-up for most tokens, which are neither in capitals nor after such a letter.
    if (token[0] >= 'A' && token[0] <= 'Z' && is_upper_word(token) && (classes_of(lowered(token)) & blank) != 0)
      ++found;
    if (!before.empty() && (classes_of(lowered(token)) & count_noun) != 0) ++found;
    // "1 M rows", "41 M ops": after a number such a letter is a unit.
    before = stands_for_number(token) && !behind_number ? token : std::string_view();
    behind_number = is_digit(token.back());
    if ((token[0] == 'Y' && token.starts_with("YYYY-")) || (token.back() == 'X' && token.ends_with("-XX"))) ++found;
  }
  return found;
}

}  // namespace

Blank blank_kind(std::string_view value) {
  value = trimmed(value);
  if (value.empty() || value.size() > blank_bytes_max) return Blank::no;
  if (is_rule(value)) return Blank::hard;
  if (value == "[]" || value == "[]," || value == "{}" || value == "{},") return Blank::soft;  // an empty list of JSON
  const bool slot =
      (value.starts_with("{{") && value.ends_with("}}")) || (value.starts_with("<<") && value.ends_with(">>"));
  if (slot && value.size() <= slot_bytes_max) return Blank::hard;
  if (std::any_of(value.begin(), value.end(), is_digit)) return Blank::no;
  const bool bracketed = std::string_view("[<{(").find(value[0]) != std::string_view::npos;
  std::size_t words = 0, hard = 0, soft = 0, filler = 0;
  bool to_be = false;
  std::string before;
  each_word(value, [&](std::string_view word) {
    const std::uint32_t classes = classes_of(word);
    ++words;
    if ((classes & blank) != 0) {
      ++hard;
    } else if ((classes & soft_blank) != 0 || word == "n" || word == "a") {
      ++soft;
    } else if ((classes & (stop_word | future | work_verb | slot_word | result_name | preposition)) != 0) {
      ++filler;
    }
    if (words == 2 && (before == "to" || before == "will") && word == "be") to_be = true;
    if (words == 2 && before == "coming" && word == "soon") to_be = true;
    if (words == 2 && before == "not" && (word == "yet" || word == "available" || word == "applicable")) to_be = true;
    before = word;
  });
  if (words == 0) {
    const std::string_view core = core_of(value);
    return core.empty() || is_rule(core) ? (value.size() >= 2 ? Blank::hard : Blank::soft) : Blank::no;
  }
  if (to_be && words <= 10) return Blank::hard;
  if (hard + soft + filler < words || hard + soft == 0) return Blank::no;
  if (hard > 0 || (bracketed && soft > 0 && is_upper_word(core_of(value)))) return Blank::hard;
  return words <= 3 ? Blank::soft : Blank::no;
}

Field field_of(std::string_view line) {
  line = trimmed(line);
  while (!line.empty() && (line[0] == '-' || line[0] == '*' || line[0] == '#' || line[0] == '>' || is_blank(line[0]))) {
    line.remove_prefix(1);
  }
  Field field;
  const std::size_t end = std::min(line.size(), field_name_bytes_max);
  std::size_t at = 0, width = 1;
  while (at < end && line[at] != ':' && line[at] != '=' && line[at] != '|' &&
         (line[at] != '-' || at + 1 == line.size() || line[at + 1] != '>'))
    ++at;
  if (at == end) return field;
  if (line[at] == '-') width = 2;
  if (at == 0) return field;
  const std::string_view name = trimmed(line.substr(0, at));
  std::size_t words = 0;
  std::uint32_t classes = 0;
  each_word(name, [&](std::string_view word) {
    ++words;
    classes |= classes_of(word);
  });
  if (words == 0 || words > 5) return field;
  if (line.substr(at).starts_with("://") || line.substr(at).starts_with("::")) return field;
  field.name = name;
  field.value = trimmed(line.substr(at + width));
  while (!field.value.empty() && (field.value[0] == '*' || field.value[0] == '=')) field.value.remove_prefix(1);
  field.value = trimmed(field.value);
  field.promises_result = (classes & result_name) != 0;
  return field;
}

std::size_t blanks_inside(std::string_view line) {
  // Slots need brackets. A blank word is in capitals, or begins with one of four marks.
  unsigned kinds = 0, before = 0;
  bool word = false;
  for (const char c : line) {
    const unsigned kind = byte_kind(c);
    const bool capital = (before & upper_byte) != 0 && kind != lower_byte;
    const bool mark = kind == mark_byte && (before & (lower_byte | upper_byte | wide_byte | digit_byte)) == 0;
    word = word || capital || mark;
    kinds |= kind;
    before = kind;
  }
  word = word || before == upper_byte;
  return ((kinds & open_byte) != 0 ? slots_inside(line) : 0) + (word ? blank_words_inside(line) : 0);
}

}  // namespace muniment::evidence::completion
