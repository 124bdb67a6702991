#include "adapters/mcp/scrub_json.hpp"

#include <optional>

#include "base/json/json.hpp"
#include "base/json/message_skim.hpp"
#include "bridge/scrub.hpp"

namespace muniment::cli {
namespace {

bool begins_number(char c) { return c == '-' || (c >= '0' && c <= '9'); }

// Scrubs a string literal. If `whole` is set, the whole string is a secret.
std::size_t scrub_literal(std::string& literal, bool whole) {
  if (whole) {
    literal = json::quote(bridge::scrubbed_text);
    return 1;
  }
  const bool closed = literal.size() >= 2;
  const std::string_view inside = std::string_view(literal).substr(1, closed ? literal.size() - 2 : 0);
  if (inside.empty()) return 0;
  const auto said = json::string_of(literal);
  if (said) {
    std::string text = *said;
    const std::size_t count = bridge::scrub_text(text);
    if (count > 0) literal = json::quote(text);
    return count;
  }
  std::string text(inside);  // still escaped, because its escapes cannot be decoded
  const std::size_t count = bridge::scrub_text(text);
  if (count > 0) literal = '"' + text + '"';
  return count;
}

}  // namespace

std::size_t scrub_json(std::string& json) {
  std::size_t count = 0;
  std::string out;
  std::size_t depth = 0;
  constexpr std::size_t none = SIZE_MAX;
  std::size_t secret_at = none;  // depth of the object with a member whose name implies a secret
  for (std::size_t at = 0; at < json.size();) {
    const char c = json[at];
    const bool is_string = c == '"';
    if (!is_string && !begins_number(c)) {
      if (c == '{' || c == '[') ++depth;
      if ((c == '}' || c == ']') && depth > 0) --depth;
      const bool member_ends = c == ',' || c == '}' || c == ']';
      if (secret_at != none && member_ends && depth < secret_at + (c == ',' ? 1 : 0)) secret_at = none;
      out += c;
      ++at;
      continue;
    }
    const std::size_t end = json::skip_value(json, at);
    std::string literal = json.substr(at, end - at);
    const std::size_t after = json::skip_blanks(json, end);
    at = end;
    if (is_string && after < json.size() && json[after] == ':') {
      if (secret_at == none && bridge::is_secret_member(json::string_of(literal).value_or(literal))) secret_at = depth;
    } else if (is_string) {
      count += scrub_literal(literal, secret_at != none);
    } else if (secret_at != none) {
      literal = json::quote(bridge::scrubbed_text);
      ++count;
    }
    out += literal;
  }
  if (count > 0) json = std::move(out);
  return count;
}

}  // namespace muniment::cli
