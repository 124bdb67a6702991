#include "store/files/pieces.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

namespace muniment::store {
namespace {

constexpr std::size_t hash_bytes = sizeof(Hash);
constexpr std::int64_t node_values = 256;

// The hash includes the level, so that a node cannot be mistaken for a node of a different level.
Hash hash_of_node(std::size_t level, std::string_view values) {
  const char number = static_cast<char>(level);
  return sha256({std::string_view(&number, 1), values});
}

// Number of chaining values between pieces: none before the first piece and none after the last.
std::int64_t values_of(std::int64_t size_bytes) { return (size_bytes - 1) / piece_bytes; }

}  // namespace

bool has_pieces(std::int64_t size_bytes) { return size_bytes > unpieced_bytes_max; }

void PieceHasher::update(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto room = static_cast<std::size_t>(piece_bytes - size_ % piece_bytes);
    const std::string_view part = bytes.substr(0, room);
    hash_.update(part);
    size_ += std::ssize(part);
    bytes.remove_prefix(part.size());
    if (size_ % piece_bytes == 0) values_ += view(hash_.chaining_value());
  }
}

Hash PieceHasher::finish() { return hash_.finish(); }

Pieces PieceHasher::pieces() const {
  Pieces out;
  if (!has_pieces(size_)) return out;
  std::string level = values_.substr(0, static_cast<std::size_t>(values_of(size_)) * hash_bytes);
  constexpr std::size_t node_bytes = static_cast<std::size_t>(node_values) * hash_bytes;
  for (std::size_t number = 0;; ++number) {
    out.file += level;
    if (level.size() <= node_bytes) {
      out.root = hash_of_node(number, level);
      return out;
    }
    std::string above;
    for (std::size_t at = 0; at < level.size(); at += node_bytes)
      above += view(hash_of_node(number, std::string_view(level).substr(at, node_bytes)));
    level = std::move(above);
  }
}

PieceTree::PieceTree(std::int64_t size_bytes, const Hash& root, Read read)
    : size_bytes_(size_bytes), root_(root), read_(std::move(read)) {
  std::int64_t offset = 0;
  for (std::int64_t count = values_of(size_bytes);; count = (count + node_values - 1) / node_values) {
    levels_.push_back({offset, count});
    if (count <= node_values) return;
    offset += count * static_cast<std::int64_t>(hash_bytes);
  }
}

Result<Hash> PieceTree::value(std::size_t level, std::int64_t index) {
  const std::int64_t number = index / node_values;
  const std::int64_t first = number * node_values;
  auto node = verified_.find({level, number});
  if (node == verified_.end()) {
    const std::int64_t count = std::min(node_values, levels_[level].count - first);
    ASSIGN_OR_RETURN(std::string values, read_(levels_[level].offset + first * static_cast<std::int64_t>(hash_bytes),
                                               static_cast<std::size_t>(count) * hash_bytes));
    Hash expected = root_;
    if (level + 1 < levels_.size()) {
      ASSIGN_OR_RETURN(expected, value(level + 1, number));
    }
    if (std::ssize(values) != count * static_cast<std::int64_t>(hash_bytes) ||
        hash_of_node(level, values) != expected) {
      return Error(Errc::corrupt, "the pieces do not lead to their root");
    }
    node = verified_.emplace(std::pair(level, number), std::move(values)).first;
  }
  Hash hash;
  std::memcpy(hash.data(), node->second.data() + static_cast<std::size_t>(index - first) * hash_bytes, hash_bytes);
  return hash;
}

Result<bool> PieceTree::fits(std::int64_t first, std::string_view bytes, const Hash& whole) {
  const std::int64_t begin = first * piece_bytes;
  const std::int64_t end = begin + std::ssize(bytes);
  std::optional<ChainedSha256> resumed;
  if (first > 0) {
    ASSIGN_OR_RETURN(const Hash before, value(0, first - 1));
    resumed.emplace(before, static_cast<std::uint64_t>(begin));
  }
  ChainedSha256 fresh;
  ChainedSha256& digest = resumed ? *resumed : fresh;
  digest.update(bytes);
  if (end == size_bytes_) return digest.finish() == whole;
  ASSIGN_OR_RETURN(const Hash behind, value(0, end / piece_bytes - 1));
  return digest.chaining_value() == behind;
}

}  // namespace muniment::store
