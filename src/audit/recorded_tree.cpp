#include "audit/recorded_tree.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "audit/closed_tree.hpp"
#include "events/merkle_proof.hpp"

namespace muniment::audit {
namespace {

constexpr std::chrono::milliseconds visible_before{1'000};

Error other_leaf(std::int64_t seq) {
  return {Errc::corrupt,
          fmt::format("event {} is not the one in the log's tree: the log was changed. Run muniment-verify", seq)};
}

}  // namespace

const std::string* ProvenTiles::find(std::int64_t tile) {
  const auto found = tiles_.find(tile);
  if (found == tiles_.end()) return nullptr;
  found->second.used = ++uses_;
  return &found->second.leaves;
}

void ProvenTiles::put(std::int64_t tile, std::string leaves) {
  if (tiles_.size() >= tiles_max_ && !tiles_.contains(tile))
    tiles_.erase(std::ranges::min_element(tiles_, {}, [](const auto& held) { return held.second.used; }));
  tiles_[tile] = {std::move(leaves), ++uses_};
}

// Reads a tile and proves its first leaf. The hashes of that proof include all other leaves of the tile, so that the
// whole tile is proven.
Status PublishedTree::prove_tile(std::int64_t tile, const Fd& tiles, const Checkpoint& checkpoint) {
  const std::int64_t size = checkpoint.size, first = tile * tile_width;
  TreeReader tree(tiles, size);
  std::string leaves;
  for (std::int64_t seq = first; seq < std::min(size, first + tile_width); ++seq) {
    ASSIGN_OR_RETURN(const Hash leaf, tree.node(0, seq));
    leaves.append(view(leaf));
  }
  ASSIGN_OR_RETURN(const Hash leaf, tree.node(0, first));
  ASSIGN_OR_RETURN(const auto proof, events::inclusion_proof(first, size, tree.reader()));
  if (!events::proves_inclusion(leaf, first, size, checkpoint.root, proof)) {
    return Error(
        Errc::corrupt,
        fmt::format("the tiles of the events from {} on do not yield the log's root. Run muniment-verify", first));
  }
  tiles_.put(tile, std::move(leaves));
  return success();
}

Status PublishedTree::holds(const events::Event& event, const Hash& leaf, Deadline until) {
  const std::int64_t seq = event.seq;
  if (seq < 0) return other_leaf(seq);
  if (restored_ != nullptr) {
    ASSIGN_OR_RETURN(const ClosedTree::Proven* const proven, restored_->proven(until));
    const TreeToProve& whole = proven->whole;
    if (seq >= whole.published.checkpoint.size) return other_leaf(seq);
    return compare(seq, leaf, whole.tiles, whole.published.checkpoint);
  }
  if (seq >= tail_.next_seq()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (!tail_.wait(seq, std::clamp(left, std::chrono::milliseconds(0), visible_before))) {
      const store::LogStatus log = appender_.status();
      if (seq >= log.size + log.in_flight) return other_leaf(seq);
      return Error(Errc::unavailable, fmt::format("the commit of event {} is in progress. Retry.", seq));
    }
  }
  Published published = publisher_.newest();
  if (seq >= published.checkpoint.size) {
    const auto newer = tail_.read(seq, 1);
    if (newer && !newer->empty()) {
      const events::Event& written = *newer->front();
      return written.seq == seq && written.run_hash == event.run_hash ? success() : Status(other_leaf(seq));
    }
    ASSIGN_OR_RETURN(published, publisher_.covering(seq, until));
  }
  return compare(seq, leaf, publisher_.tiles(), published.checkpoint);
}

Status PublishedTree::compare(std::int64_t seq, const Hash& leaf, const Fd& tiles, const Checkpoint& checkpoint) {
  const auto at = static_cast<std::size_t>(seq % tile_width) * sizeof(Hash);
  const std::lock_guard lock(mutex_);
  const std::string* leaves = tiles_.find(seq / tile_width);
  if (leaves == nullptr || leaves->size() <= at) {
    RETURN_IF_ERROR(prove_tile(seq / tile_width, tiles, checkpoint));
    leaves = tiles_.find(seq / tile_width);
  }
  return std::memcmp(leaves->data() + at, leaf.data(), sizeof(Hash)) == 0 ? success() : Status(other_leaf(seq));
}

}  // namespace muniment::audit
