#include "verify/signed/tile_name.hpp"

#include <charconv>
#include <string_view>

#include "base/limits.hpp"

namespace muniment::verify {
namespace {

std::optional<std::int64_t> number_of(std::string_view digits) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < 0) return std::nullopt;
  return value;
}

}  // namespace

std::optional<TileName> tile_name(const std::string& path) {
  std::string_view rest(path);
  const auto part = [&rest] {
    const std::size_t slash = rest.find('/');
    const std::string_view taken = rest.substr(0, slash);
    rest.remove_prefix(slash == std::string_view::npos ? rest.size() : slash + 1);
    return taken;
  };
  if (part() != "tile") return std::nullopt;
  TileName name;
  const std::string_view level = part();
  name.entries = level == "entries";
  if (!name.entries) {
    const auto number = number_of(level);
    if (!number || *number > tile_levels_max) return std::nullopt;
    name.level = static_cast<int>(*number);
  }
  while (!rest.empty()) {
    std::string_view group = part();
    if (group.starts_with('x')) group.remove_prefix(1);
    const bool before_width = group.ends_with(".p");
    if (before_width) group.remove_suffix(2);
    const auto number = number_of(group);
    if (!number || *number > 999 || name.index > limits::tile_index_max) return std::nullopt;
    name.index = name.index * 1'000 + *number;
    if (!before_width) continue;
    const auto width = number_of(part());
    if (!width || *width < 1 || *width >= tile_width || !rest.empty()) return std::nullopt;
    name.width = *width;
  }
  if (name.path() != path) return std::nullopt;  // each name has only one spelling
  return name;
}

}  // namespace muniment::verify
