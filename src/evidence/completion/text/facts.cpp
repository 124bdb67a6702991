// Counts the facts in a token by its shape.
#include "evidence/completion/text/facts.hpp"

#include <algorithm>
#include <array>

#include "evidence/completion/text/words.hpp"

namespace muniment::evidence::completion {
namespace {

// Punctuation of the sentence around a token.
constexpr auto is_around = [] {
  std::array<bool, 256> table{};
  for (const char c : std::string_view(".,;:!?()[]{}<>\"'`*|=")) table[static_cast<unsigned char>(c)] = true;
  return table;
}();

constexpr std::size_t extension_letters_max = 5;
constexpr std::size_t digest_digits_min = 7;

struct Shape {
  std::size_t digits = 0, letters = 0, slashes = 0, dots = 0, dashes = 0, colons = 0, underscores = 0, others = 0;
  bool hump = false, hex = true, qualified = false;
};

bool is_plain_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

Shape shape_of_token(std::string_view core) {
  Shape shape;
  for (std::size_t i = 0; i < core.size(); ++i) {
    const char c = core[i];
    if (is_digit(c)) {
      ++shape.digits;
    } else if (is_letter(c)) {
      ++shape.letters;
      const char small = lower(c);
      if (small > 'f') shape.hex = false;
      if (i > 0 && c >= 'A' && c <= 'Z' && core[i - 1] >= 'a' && core[i - 1] <= 'z') shape.hump = true;
    } else if (c == '/' || c == '\\') {
      ++shape.slashes;
    } else if (c == '.') {
      ++shape.dots;
    } else if (c == '-') {
      ++shape.dashes;
    } else if (c == ':') {
      ++shape.colons;
      if (i > 0 && core[i - 1] == ':') shape.qualified = true;
    } else if (c == '_') {
      ++shape.underscores;
    } else {
      ++shape.others;
    }
  }
  return shape;
}

// "app.py", "report.json": letters, a dot, a short extension in lower case.
bool is_file_name(std::string_view core) {
  const std::size_t dot = core.rfind('.');
  if (dot == std::string_view::npos || dot < 2 || dot + 1 >= core.size()) return false;
  const std::string_view extension = core.substr(dot + 1);
  if (extension.size() > extension_letters_max || !is_plain_letter(core[dot - 1])) return false;
  return std::all_of(extension.begin(), extension.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

bool is_path(std::string_view core, const Shape& shape) {
  if (shape.slashes == 0 || shape.letters < 2) return false;
  return shape.slashes >= 2 || core[0] == '/' || core[0] == '.' || shape.underscores > 0 || is_file_name(core);
}

bool is_absolute(std::string_view number, std::string_view unit) {
  const std::size_t digit = number.find_first_not_of("0.,");
  if (digit == std::string_view::npos) return true;
  return number == "100" && (unit == "%" || unit == "percent" || unit.empty());
}

std::size_t half_facts_of_number(std::string_view core, std::string_view next) {
  const std::size_t end = position_of(core, [](char c) { return !is_digit(c) && c != '.' && c != ','; });
  const std::string_view number = core.substr(0, end);
  if (std::count(number.begin(), number.end(), '.') >= 2 && number.size() >= 5) return 2;  // a version, an address
  const std::string_view unit = core.substr(end);
  if (is_absolute(number, unit)) return 1;
  if (!unit.empty()) return 2;  // 0.31s, 98%, 4/12, 3x
  return (classes_of(lowered(core_of(next).substr(0, word_bytes_max))) & count_noun) != 0 ? 2 : 1;
}

}  // namespace

std::string_view core_of(std::string_view token) {
  while (!token.empty() && is_around[static_cast<unsigned char>(token.front())]) token.remove_prefix(1);
  while (!token.empty() && is_around[static_cast<unsigned char>(token.back())]) token.remove_suffix(1);
  return token;
}

namespace {

bool is_identifier_of(std::string_view core, const Shape& shape) {
  if (shape.letters < 2) return false;
  if (shape.underscores > 0 && shape.underscores * 2 <= shape.letters + shape.digits) return true;
  return shape.hump || shape.qualified || is_path(core, shape) || (shape.dots > 0 && is_file_name(core)) ||
         (shape.others > 0 && (core.ends_with("(") || core.find("()") != std::string_view::npos)) ||
         (shape.dashes > 1 && core.starts_with("--") && shape.letters >= 3);
}

// Half facts of a token that is not an identifier.
std::size_t half_facts_of_shape(std::string_view core, const Shape& shape, std::string_view next) {
  if (shape.slashes > 1 && core.find("://") != std::string_view::npos && core.size() > 8) return 2;
  if (shape.others > 0 && core.find('@') != std::string_view::npos && shape.letters >= 3) return 2;
  // "-l", "-race": an option of a command.
  if (core.size() >= 2 && core[0] == '-' && is_plain_letter(core[1]) && shape.others + shape.dots == 0) return 1;
  if (shape.digits == 0) return 0;
  const bool time =
      shape.digits >= 4 && shape.letters <= 2 && (shape.colons >= 1 || shape.dashes == 2 || shape.slashes == 2);
  if (time) return 2;
  if (shape.hex && shape.digits + shape.letters >= digest_digits_min && shape.letters > 0 && shape.others == 0)
    return 2;
  const char first =
      core[0] == '#' || core[0] == '+' || core[0] == '-' || core[0] == '$' || core[0] == '~' || core[0] == 'v'
          ? (core.size() > 1 ? core[1] : ' ')
          : core[0];
  if (!is_digit(first)) return 1;  // utf8, p95, =12
  return half_facts_of_number(first == core[0] ? core : core.substr(1), next);
}

}  // namespace

bool is_identifier(std::string_view core) { return is_identifier_of(core, shape_of_token(core)); }

TokenFacts facts_of_token(std::string_view core, std::string_view next) {
  if (core.empty() || std::all_of(core.begin(), core.end(), [](char c) { return c >= 'a' && c <= 'z'; })) return {};
  const Shape shape = shape_of_token(core);
  if (is_identifier_of(core, shape)) return {true, 2};
  return {false, half_facts_of_shape(core, shape, next)};
}

std::size_t half_facts_of(std::string_view core, std::string_view next) {
  return facts_of_token(core, next).half_facts;
}

}  // namespace muniment::evidence::completion
