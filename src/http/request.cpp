// Looks up the headers of a request.
#include "http/request.hpp"

#include <algorithm>

namespace muniment::http {
namespace {

char lower(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter; }

}  // namespace

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

std::optional<std::string> Request::header(std::string_view name) const {
  const auto values = headers_named(name);
  if (values.empty()) return {};
  return std::string(values.front());
}

std::vector<std::string_view> Request::headers_named(std::string_view name) const {
  std::vector<std::string_view> values;
  for (const Header& one : headers) {
    if (equal_ignoring_case(one.name, name)) values.emplace_back(one.value);
  }
  return values;
}

}  // namespace muniment::http
