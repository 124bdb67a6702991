#include "base/json/jsonb.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "base/limits.hpp"

namespace muniment::json {
namespace {

constexpr std::string_view number_bytes = "+-.0123456789Ee";

bool fits_64_bits(std::string_view token) {
  const auto fits = [token](auto value) {
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
    return error == std::errc{} && end == token.data() + token.size();
  };
  return fits(std::int64_t{}) || fits(std::uint64_t{});
}

// Only integers gain digits, and zeros gain decimal places: jsonb prints 0e-308 with 308 of them.
std::string accepted(std::string_view token) {
  if (token.find_first_of("123456789") == std::string_view::npos) return token.size() > 1 ? "0.0" : "0";
  if (token.find_first_of(".eE") != std::string_view::npos || fits_64_bits(token)) return std::string(token);
  const bool negative = token.front() == '-';
  std::string_view digits = token.substr(negative ? 1 : 0);
  const std::size_t exponent = digits.size() - 1;
  digits = digits.substr(0, digits.find_last_not_of('0') + 1);
  std::string out(token.substr(0, negative ? 2 : 1));
  if (digits.size() > 1) out.append(1, '.').append(digits, 1);
  return out + 'e' + std::to_string(exponent);
}

}  // namespace

std::size_t jsonb_bytes_max(const Value& value) {
  switch (value.kind()) {
    case Kind::null:
    case Kind::boolean:
    case Kind::string: return value.source().size();
    case Kind::number: {
      const bool plain = value.source().find_first_of("eE") == std::string_view::npos;
      return value.source().size() + (plain ? 0 : static_cast<std::size_t>(limits::number_exponent_max));
    }
    case Kind::array: {
      std::size_t bytes = 2;
      for (const Value item : value) bytes += jsonb_bytes_max(item) + 2;
      return bytes;
    }
    case Kind::object: {
      std::size_t bytes = 2;
      for (const Value member : value) bytes += quote(member.key()).size() + jsonb_bytes_max(member) + 4;
      return bytes;
    }
  }
  return 0;
}

std::string from_jsonb(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    if (text[at] == '"') {
      while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2U : 1U;
      end = std::min(end + 1, text.size());
    } else if (text[at] == '-' || (text[at] >= '0' && text[at] <= '9')) {
      end = std::min(text.find_first_not_of(number_bytes, at), text.size());
      out += accepted(text.substr(at, end - at));
      at = end;
      continue;
    }
    out.append(text, at, end - at);
    at = end;
  }
  return out;
}

}  // namespace muniment::json
