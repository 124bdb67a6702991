#include "verify/state/cost.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "verify/state/value.hpp"

namespace muniment::verify {
namespace {

constexpr std::size_t amount_bytes_max = 100;
constexpr std::size_t currencies_max = 100;
constexpr int exponent_max = 308;
constexpr std::size_t decimals = 12;
constexpr std::size_t whole_digits_max = 15;  // an amount is below 10^15

std::size_t digits_at(std::string_view text) { return std::min(text.find_first_not_of("0123456789"), text.size()); }

// Returns the amount in trillionths, truncated, without leading zeros; nullopt unless the text matches
// (0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?
std::optional<std::string> trillionths_of(std::string_view amount) {
  if (amount.size() > amount_bytes_max) return std::nullopt;
  const std::size_t whole = digits_at(amount);
  if (whole == 0 || (amount[0] == '0' && whole > 1)) return std::nullopt;
  std::string digits(amount.substr(0, whole));
  amount.remove_prefix(whole);
  if (amount.starts_with('.')) {
    const std::size_t fraction = digits_at(amount.substr(1));
    if (fraction == 0) return std::nullopt;
    digits += amount.substr(1, fraction);
    amount.remove_prefix(1 + fraction);
  }
  int exponent = 0;
  if (!amount.empty()) {
    if (amount[0] != 'e' && amount[0] != 'E') return std::nullopt;
    amount.remove_prefix(1);
    const bool negative = amount.starts_with('-');
    if (negative || amount.starts_with('+')) amount.remove_prefix(1);
    if (amount.empty() || digits_at(amount) != amount.size()) return std::nullopt;
    const auto read = std::from_chars(amount.data(), amount.data() + amount.size(), exponent);
    if (read.ec != std::errc{} || exponent > exponent_max) return std::nullopt;
    if (negative) exponent = -exponent;
  }
  const int kept = static_cast<int>(whole + decimals) + exponent;
  digits.resize(kept > 0 ? static_cast<std::size_t>(kept) : 0, '0');
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  return digits;
}

}  // namespace

bool Costs::add(const json::Value& cost) {
  if (!cost.is(json::Kind::object)) return false;
  const auto currency = cost["currency"].as_string();
  const json::Value amount = cost["amount"];
  if (!currency || !(amount.is(json::Kind::number) || amount.is(json::Kind::string))) return false;
  const std::string text = amount.is(json::Kind::number) ? std::string(amount.source()) : amount.string_or("");
  const auto digits = trillionths_of(text);
  if (!digits || digits->size() > whole_digits_max + decimals) return false;
  if (!sums_.contains(*currency) && sums_.size() >= currencies_max) return false;
  Trillionths value = 0;
  for (const char digit : *digits) value = value * 10 + static_cast<unsigned>(digit - '0');
  sums_[*currency] += value;
  return true;
}

void Costs::write(std::string& out) const {
  out += '{';
  const char* separator = "";
  for (const auto& [currency, sum] : sums_) {
    out += separator;
    separator = ",";
    write_quoted(currency, out);
    std::string digits;
    for (Trillionths rest = sum; rest != 0; rest /= 10) digits += static_cast<char>('0' + static_cast<int>(rest % 10));
    digits.append(digits.size() <= decimals ? decimals + 1 - digits.size() : 0, '0');
    std::reverse(digits.begin(), digits.end());
    digits.insert(digits.size() - decimals, ".");
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.ends_with('.')) digits.pop_back();
    out += ":\"" + digits + '"';
  }
  out += '}';
}

}  // namespace muniment::verify
