// Edits the graph of one space separately from it: the writer links and unlinks here while searches continue; the
// changed lists are written to disk and then installed in the space at once.
//
// The graph is an HNSW (Malkov and Yashunin 2016) whose links always exist in both directions. This makes removal exact
// and local: a node knows every node that links to it. If a list is full, the least needed link is removed on both
// sides; this never leaves a node with fewer than `links_kept` links.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "retrieval/vector/beam.hpp"
#include "retrieval/vector/space.hpp"

namespace muniment::retrieval::vec {

class GraphEditor {
 public:
  explicit GraphEditor(const Space& space);

  // Returns the level of a chunk's node, which depends on the id alone. Each level is 16 times rarer than the one
  // below.
  static int level_for(ChunkId chunk);

  void insert(Slot slot);  // the slot must be filled
  void erase(Slot slot);   // the slot must be in the graph

  Slot entry() const { return entry_; }

  struct Change {
    Slot slot = no_slot;
    int level = 0;
    Links links;
  };
  // Returns the lists that were changed; those of erased nodes are empty.
  const std::deque<Change>& changes() const { return changes_; }
  bool erased(Slot slot) const { return erased_.test(slot); }

 private:
  const Slot* links(Slot slot, int level) const;
  Slot* edit(Slot slot, int level);
  std::size_t degree(Slot slot, int level) const;
  float cosine(Slot a, Slot b) const;

  void connect(Slot slot, int level, const Beam& found);  // excludes the node itself
  std::vector<Slot> choose(const Beam& found, Slot self, std::size_t at_most) const;
  bool link(Slot a, Slot b, int level);
  bool make_room(Slot full, Slot newcomer, int level);
  void unlink(Slot a, Slot b, int level);
  void drop_from(Slot list_of, Slot gone, int level);

  void heal(const std::vector<Slot>& orphans, int level);
  void reconnect(Slot slot, const std::vector<Slot>& orphans, int level);

  const Space& space_;
  Slot entry_;
  Bitmap erased_;
  Bitmap visited_;
  std::vector<std::int16_t> wide_;
  std::deque<Change> changes_;                              // changes in the order of their first occurrence
  std::vector<std::uint32_t> bottom_;                       // slot → its index in changes_ + 1; 0: unchanged
  std::unordered_map<std::uint64_t, std::uint32_t> above_;  // slot and level → the same
};

}  // namespace muniment::retrieval::vec
