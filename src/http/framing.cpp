// Checks the framing of a request.
#include "http/framing.hpp"

#include <algorithm>
#include <limits>

namespace muniment::http {
namespace {

// "tchar" of RFC 9110.
bool is_token(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

std::optional<std::uint64_t> length_of(std::string_view text) {
  std::uint64_t length = 0;
  for (const char c : text) {
    if (c < '0' || c > '9' || length > std::numeric_limits<std::uint64_t>::max() / 10 - 1) return {};
    length = length * 10 + static_cast<std::uint64_t>(c - '0');
  }
  if (text.empty()) return {};
  return length;
}

}  // namespace

std::optional<std::string> malformed(const Request& request) {
  if (!request.target.starts_with('/')) return "the target must begin with a slash";
  if (!is_token(request.method)) return "the method is not a token";
  for (const Header& one : request.headers) {
    if (!is_token(one.name)) return "a header's name is not a token";
  }
  const auto lengths = request.headers_named("Content-Length");
  const auto encodings = request.headers_named("Transfer-Encoding");
  if (lengths.size() + encodings.size() > 1) return "the body's length is given more than once";
  if (!lengths.empty() && !length_of(lengths.front())) return "Content-Length is not a number";
  if (!encodings.empty() && !equal_ignoring_case(encodings.front(), "chunked")) {
    return "Transfer-Encoding: only chunked is supported";
  }
  return {};
}

std::optional<std::uint64_t> announced_bytes(const Request& request) {
  if (!request.headers_named("Transfer-Encoding").empty()) return {};
  const auto lengths = request.headers_named("Content-Length");
  return lengths.empty() ? 0 : length_of(lengths.front());
}

}  // namespace muniment::http
