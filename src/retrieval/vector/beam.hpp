// Searches one level of the graph: from the best known nodes to their neighbours, until the best `width` have all been
// expanded (Malkov and Yashunin 2016, algorithm 2). Nodes of equal score are ordered by slot, so the same graph gives
// the same beam.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "retrieval/vector/bitmap.hpp"
#include "retrieval/vector/space.hpp"

namespace muniment::retrieval::vec {

struct Scored {
  float score = 0;
  Slot slot = no_slot;
};

inline bool better(const Scored& a, const Scored& b) {
  return a.score > b.score || (a.score == b.score && a.slot < b.slot);
}

// The best nodes so far, sorted. An insertion moves a few hundred bytes, which is faster than two heaps.
class Beam {
 public:
  explicit Beam(std::size_t width) : width_(width) { nodes_.reserve(width + 1); }

  void add(const Scored& found) {
    if (nodes_.size() == width_ && !better(found, nodes_.back())) return;
    if (nodes_.size() == width_) nodes_.pop_back();
    const auto at = std::upper_bound(nodes_.begin(), nodes_.end(), found,
                                     [](const Scored& a, const Node& b) { return better(a, b); });
    next_ = std::min(next_, static_cast<std::size_t>(at - nodes_.begin()));
    nodes_.insert(at, Node{found, false});
  }

  // Returns the best node that was not expanded; no_slot if all were.
  Slot next() {
    while (next_ < nodes_.size() && nodes_[next_].seen) ++next_;
    if (next_ == nodes_.size()) return no_slot;
    nodes_[next_].seen = true;
    return nodes_[next_++].slot;
  }

  std::size_t size() const { return nodes_.size(); }
  const Scored& operator[](std::size_t rank) const { return nodes_[rank]; }

  // Restarts the expansion for the next level, which begins with the nodes that this level found.
  void look_again(std::size_t width) {
    width_ = width;
    if (nodes_.size() > width) nodes_.resize(width);
    for (Node& node : nodes_) node.seen = false;
    next_ = 0;
  }

 private:
  struct Node : Scored {
    Node() = default;
    Node(const Scored& scored, bool was_seen) : Scored(scored), seen(was_seen) {}
    bool seen = false;
  };
  std::size_t width_;
  std::size_t next_ = 0;     // all nodes before it were expanded
  std::vector<Node> nodes_;  // best first
};

// The vector that nodes are compared with. The score is the cosine without the probe's own scale, which does not affect
// the order.
class Target {
 public:
  Target(const Space& space, const std::int16_t* probe) : space_(space), probe_(probe), dot_(space.dot().probe) {}

  Scored score(Slot slot) const {
    return {static_cast<float>(dot_(probe_, space_.code(slot), space_.padded())) * space_.scale(slot), slot};
  }
  void prefetch(Slot slot) const {
    const std::int8_t* code = space_.code(slot);
    for (std::size_t i = 0; i < space_.padded(); i += 64) __builtin_prefetch(code + i);
  }

 private:
  const Space& space_;
  const std::int16_t* probe_;
  std::int32_t (*dot_)(const std::int16_t*, const std::int8_t*, std::size_t);
};

// `links(slot)` returns the `links_at_most` links of a node at the level. Nodes in `visited` are skipped.
template <typename LinksOf>
void search_level(const Target& target, const LinksOf& links, std::size_t links_at_most, Bitmap& visited, Beam& beam) {
  constexpr std::size_t ahead = 3;  // codes prefetched from memory
  for (std::size_t rank = 0; rank < beam.size(); ++rank) visited.set(beam[rank].slot);
  for (Slot slot = beam.next(); slot != no_slot; slot = beam.next()) {
    Slot fresh[links_bottom];
    std::size_t count = 0;
    const Slot* list = links(slot);
    for (std::size_t i = 0; i < links_at_most && list[i] != no_slot; ++i) {
      if (visited.insert(list[i])) fresh[count++] = list[i];
    }
    for (std::size_t i = 0; i < std::min(ahead, count); ++i) target.prefetch(fresh[i]);
    for (std::size_t i = 0; i < count; ++i) {
      if (i + ahead < count) target.prefetch(fresh[i + ahead]);
      beam.add(target.score(fresh[i]));
    }
  }
}

// Descends from the entry to `bottom` with a beam of one node; the search of the lower levels begins there.
template <typename LinksOf>
Scored descend(const Target& target, const LinksOf& links, Slot entry, int top, int bottom) {
  Scored best = target.score(entry);
  for (int level = top; level > bottom; --level) {
    for (bool moved = true; moved;) {
      moved = false;
      const Slot* list = links(best.slot, level);
      for (std::size_t i = 0; i < links_above && list[i] != no_slot; ++i) {
        const Scored next = target.score(list[i]);
        if (!better(next, best)) continue;
        best = next;
        moved = true;
      }
    }
  }
  return best;
}

}  // namespace muniment::retrieval::vec
