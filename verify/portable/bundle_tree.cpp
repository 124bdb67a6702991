#include "verify/portable/bundle_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>

#include "base/crypto/base64.hpp"
#include "verify/log/hashing.hpp"

namespace muniment::verify {
namespace {

class KnownTree {
 public:
  KnownTree(const KnownLeaves& leaves, const KnownNodes& nodes) : leaves_(leaves), nodes_(nodes) {}

  // Returns the root of the leaves [begin, end). The known leaves in this range are those at [first, last).
  Result<Hash> root(std::int64_t begin, std::int64_t end, std::size_t first, std::size_t last) {
    const std::int64_t count = end - begin;
    const bool perfect = std::has_single_bit(static_cast<std::uint64_t>(count));
    if (first == last && perfect) return node(begin, count);
    if (count == 1) return leaves_[first].second;
    const std::int64_t middle =
        begin + static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(count - 1)));
    const auto split = std::lower_bound(leaves_.begin() + static_cast<std::ptrdiff_t>(first),
                                        leaves_.begin() + static_cast<std::ptrdiff_t>(last), middle,
                                        [](const auto& leaf, std::int64_t seq) { return leaf.first < seq; });
    const auto between = static_cast<std::size_t>(split - leaves_.begin());
    ASSIGN_OR_RETURN(const Hash left, root(begin, middle, first, between));
    ASSIGN_OR_RETURN(const Hash right, root(middle, end, between, last));
    return node_hash(left, right);
  }
  std::size_t used() const { return used_; }

 private:
  // Ranges are split at powers of two, so that a perfect range begins at a multiple of its count.
  Result<Hash> node(std::int64_t begin, std::int64_t count) {
    const std::int64_t level = std::countr_zero(static_cast<std::uint64_t>(count));
    const auto found = nodes_.find({level, begin / count});
    if (found == nodes_.end())
      return Error(Errc::corrupt, fmt::format("the node {} {} is missing", level, begin / count));
    ++used_;
    return found->second;
  }

  const KnownLeaves& leaves_;
  const KnownNodes& nodes_;
  std::size_t used_ = 0;
};

}  // namespace

Result<std::pair<std::pair<std::int64_t, std::int64_t>, Hash>> parse_node(std::string_view line) {
  const Error bad(Errc::corrupt, "nodes: a line is not `<level> <index> <base64 of 32 bytes>`");
  const auto number = [&line]() -> std::int64_t {
    std::int64_t value = -1;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
    const auto length = static_cast<std::size_t>(end - line.data());
    if (error != std::errc() || line.substr(length, 1) != " " || fmt::to_string(value) != line.substr(0, length))
      return -1;
    line.remove_prefix(length + 1);
    return value;
  };
  const std::int64_t level = number();
  const std::int64_t index = level >= 0 ? number() : -1;
  const auto bytes = from_base64(line);
  if (level < 0 || level > 62 || index < 0 || !bytes || bytes->size() != sizeof(Hash)) return bad;
  Hash hash{};
  std::ranges::copy(*bytes, hash.begin());
  return std::pair(std::pair(level, index), hash);
}

Result<Hash> root_of_known(std::int64_t size, const KnownLeaves& leaves, const KnownNodes& nodes) {
  if (size == 0) return sha256("");
  KnownTree tree(leaves, nodes);
  ASSIGN_OR_RETURN(const Hash root, tree.root(0, size, 0, leaves.size()));
  if (tree.used() != nodes.size())
    return Error(Errc::corrupt, fmt::format("{} nodes are superfluous", nodes.size() - tree.used()));
  return root;
}

}  // namespace muniment::verify
