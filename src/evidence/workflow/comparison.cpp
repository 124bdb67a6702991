#include "evidence/workflow/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace muniment::evidence::workflow {
namespace {

constexpr std::int64_t piece_bytes = 1 << 20;

}  // namespace

Result<std::optional<std::int64_t>> first_difference(const ReadBytes& one, const ReadBytes& other) {
  for (std::int64_t offset = 0; offset < searched_bytes_max;) {
    ASSIGN_OR_RETURN(const std::string a, one(offset, piece_bytes));
    ASSIGN_OR_RETURN(const std::string b, other(offset, piece_bytes));
    const auto [at, same_at] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    if (at != a.end() || same_at != b.end()) return std::optional<std::int64_t>(offset + (at - a.begin()));
    if (a.empty()) break;
    offset += static_cast<std::int64_t>(a.size());
  }
  return std::optional<std::int64_t>();
}

std::string describe(const Compared& pair) {
  if (!pair.output) return fmt::format("{}: the tester wrote no output", pair.name);
  if (pair.equal())
    return fmt::format("{}: equal, {} bytes, sha256:{}", pair.name, pair.golden.size_bytes, to_hex(pair.golden.hash));
  const std::string at =
      pair.first_difference ? fmt::format("differs at byte {}", *pair.first_difference) : std::string("differs");
  return fmt::format("{}: {} ({} bytes expected, {} bytes found)", pair.name, at, pair.golden.size_bytes,
                     pair.output->size_bytes);
}

std::string describe(const std::vector<Compared>& pairs) {
  const auto equal = std::count_if(pairs.begin(), pairs.end(), [](const Compared& pair) { return pair.equal(); });
  std::string text = fmt::format("{} of {} outputs equal their golden files", equal, pairs.size());
  for (const Compared& pair : pairs) text += "\n" + describe(pair);
  return text;
}

}  // namespace muniment::evidence::workflow
