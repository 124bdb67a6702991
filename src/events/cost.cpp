// Parses amounts of money and formats their sums.
#include "events/cost.hpp"

#include <algorithm>
#include <cstddef>

namespace muniment::events {
namespace {

constexpr std::size_t text_bytes_max = 100;
constexpr int exponent_max = 308;
constexpr int decimals = 12;
constexpr int amount_digits_max = 15 + decimals;  // an amount is below 10^15
constexpr int sum_digits_max = 38;                // digits that fit into 128 bits

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view take_digits(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
  const std::string_view digits = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  return digits;
}

// Removes [eE][+-]?[0-9]+ from the end of the text and returns its value; 0 if there is none.
std::optional<int> take_exponent(std::string_view text) {
  if (text.empty()) return 0;
  if (text[0] != 'e' && text[0] != 'E') return std::nullopt;
  text.remove_prefix(1);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const std::string_view digits = take_digits(text);
  if (digits.empty() || !text.empty()) return std::nullopt;
  int exponent = 0;
  for (char c : digits) {
    exponent = exponent * 10 + (c - '0');
    if (exponent > exponent_max) return std::nullopt;
  }
  return negative ? -exponent : exponent;
}

std::optional<Picos> parse(std::string_view text, int digits_max) {
  if (text.size() > text_bytes_max) return std::nullopt;
  const std::string_view whole = take_digits(text);
  if (whole.empty() || (whole.size() > 1 && whole[0] == '0')) return std::nullopt;
  std::string_view fraction;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    fraction = take_digits(text);
    if (fraction.empty()) return std::nullopt;
  }
  const std::optional<int> exponent = take_exponent(text);
  if (!exponent) return std::nullopt;

  std::string digits = std::string(whole) + std::string(fraction);
  int kept = static_cast<int>(whole.size()) + *exponent + decimals;  // number of digits that are whole picos
  const std::size_t zeros = std::min(digits.find_first_not_of('0'), digits.size());
  digits.erase(0, zeros);
  kept -= static_cast<int>(zeros);
  if (digits.empty() || kept <= 0) return Picos{0};
  if (kept > digits_max) return std::nullopt;
  digits.resize(static_cast<std::size_t>(kept), '0');
  Picos value = 0;
  for (char c : digits) value = value * 10 + static_cast<unsigned>(c - '0');
  return value;
}

}  // namespace

std::optional<Picos> parse_amount(std::string_view text) { return parse(text, amount_digits_max); }

std::optional<Picos> parse_sum(std::string_view text) { return parse(text, sum_digits_max); }

std::string sum_text(Picos sum) {
  std::string digits;
  for (; sum != 0; sum /= 10) digits.push_back(static_cast<char>('0' + static_cast<int>(sum % 10)));
  while (digits.size() <= decimals) digits.push_back('0');
  std::reverse(digits.begin(), digits.end());
  digits.insert(digits.size() - decimals, 1, '.');
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.ends_with('.')) digits.pop_back();
  return digits;
}

}  // namespace muniment::events
