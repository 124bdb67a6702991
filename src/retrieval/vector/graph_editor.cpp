// Inserts and removes nodes of a graph.
#include "retrieval/vector/graph_editor.hpp"

#include <algorithm>
#include <bit>

namespace muniment::retrieval::vec {
namespace {

constexpr std::size_t build_width = 128;  // beam of an insertion (ef_construction)
constexpr std::size_t links_new = 16;     // links of a new node (M)
constexpr std::size_t links_kept = 6;     // with at most this many links, a node gives up none for another's benefit
constexpr int level_bits = 4;             // each level has 1/16 of the nodes below, as M requires
constexpr int level_max = 12;
constexpr std::uint64_t level_seed = 0x6d75'6e69'6d65'6e74;

std::uint64_t key_of(Slot slot, int level) { return std::uint64_t{slot} << 8 | static_cast<std::uint64_t>(level); }

}  // namespace

GraphEditor::GraphEditor(const Space& space)
    : space_(space),
      entry_(space.header.entry),
      erased_(space.used().words() * Bitmap::word_bits),
      visited_(space.used().words() * Bitmap::word_bits),
      wide_(space.padded()),
      bottom_(space.used().words() * Bitmap::word_bits) {}

// splitmix64 (Steele, Lea and Flood 2014); its leading zeros have the distribution that levels need.
int GraphEditor::level_for(ChunkId chunk) {
  std::uint64_t mixed = level_seed + chunk * 0x9e37'79b9'7f4a'7c15u;
  mixed = (mixed ^ mixed >> 30) * 0xbf58'476d'1ce4'e5b9u;
  mixed = (mixed ^ mixed >> 27) * 0x94d0'49bb'1331'11ebu;
  return std::min(std::countl_zero(mixed ^ mixed >> 31) / level_bits, level_max);
}

const Slot* GraphEditor::links(Slot slot, int level) const {
  if (level == 0) {
    const std::uint32_t place = bottom_[slot];
    return place == 0 ? space_.links(slot, 0) : changes_[place - 1].links.data();
  }
  const auto found = above_.find(key_of(slot, level));
  return found == above_.end() ? space_.links(slot, level) : changes_[found->second - 1].links.data();
}

Slot* GraphEditor::edit(Slot slot, int level) {
  std::uint32_t& place = level == 0 ? bottom_[slot] : above_[key_of(slot, level)];
  if (place == 0) {
    Change& change = changes_.emplace_back(Change{slot, level, {}});
    change.links.fill(no_slot);
    if (space_.used().test(slot)) std::copy_n(space_.links(slot, level), links_max(level), change.links.data());
    place = static_cast<std::uint32_t>(changes_.size());
  }
  return changes_[place - 1].links.data();
}

std::size_t GraphEditor::degree(Slot slot, int level) const {
  const Slot* list = links(slot, level);
  return static_cast<std::size_t>(std::find(list, list + links_max(level), no_slot) - list);
}

float GraphEditor::cosine(Slot a, Slot b) const {
  return static_cast<float>(space_.dot().codes(space_.code(a), space_.code(b), space_.padded())) * space_.scale(a) *
         space_.scale(b);
}

void GraphEditor::insert(Slot slot) {
  const int level = space_.level(slot);
  for (int l = 0; l <= level; ++l) edit(slot, l);
  if (entry_ == no_slot) {
    entry_ = slot;
    return;
  }
  const auto links_at = [&](Slot s, int l) { return links(s, l); };
  widen(space_.code(slot), space_.padded(), wide_.data());
  const Target target(space_, wide_.data());
  const int top = space_.level(entry_);
  Beam beam(build_width);
  beam.add(descend(target, links_at, entry_, top, level));
  for (int l = std::min(top, level); l >= 0; --l) {
    visited_.clear();
    visited_.set(slot);
    beam.look_again(build_width);
    search_level(
        target, [&](Slot s) { return links(s, l); }, links_max(l), visited_, beam);
    connect(slot, l, beam);
  }
  if (level > top) entry_ = slot;
}

// The scores of `found` are relative to the node itself, without its own scale.
void GraphEditor::connect(Slot slot, int level, const Beam& found) {
  const std::vector<Slot> chosen = choose(found, slot, links_new);
  for (const Slot other : chosen) link(slot, other, level);
  if (degree(slot, level) > 0 || chosen.empty()) return;
  // All near nodes are full and need their links. The nearest one drops the link that it needs least.
  const Slot nearest = chosen.front();
  const Slot* list = links(nearest, level);
  const Slot spared = *std::max_element(list, list + links_max(level),
                                        [&](Slot a, Slot b) { return degree(a, level) < degree(b, level); });
  unlink(nearest, spared, level);
  link(slot, nearest, level);
}

// Chooses neighbours in different directions: a node that is nearer to a chosen one than to the new node can be reached
// through it (algorithm 4 of the paper).
std::vector<Slot> GraphEditor::choose(const Beam& found, Slot self, std::size_t at_most) const {
  std::vector<Slot> chosen;
  for (std::size_t rank = 0; rank < found.size() && chosen.size() < at_most; ++rank) {
    const Slot candidate = found[rank].slot;
    const float near = found[rank].score * space_.scale(self);
    const bool covered =
        std::any_of(chosen.begin(), chosen.end(), [&](Slot other) { return cosine(candidate, other) > near; });
    if (!covered) chosen.push_back(candidate);
  }
  return chosen;
}

// Returns false if one of them is full and needs all of its links more.
bool GraphEditor::link(Slot a, Slot b, int level) {
  const Slot* list = links(a, level);
  const std::size_t most = links_max(level);
  if (std::find(list, list + most, b) != list + most) return true;
  if (degree(a, level) == most && !make_room(a, b, level)) return false;
  if (degree(b, level) == most && !make_room(b, a, level)) return false;
  edit(a, level)[degree(a, level)] = b;
  edit(b, level)[degree(b, level)] = a;
  return true;
}

// Drops those links, among the links of `full` and the new one, whose target another link also reaches, the farthest
// first. Returns false if the new one is dropped.
bool GraphEditor::make_room(Slot full, Slot newcomer, int level) {
  std::vector<Scored> order;
  const std::size_t most = links_max(level);
  for (std::size_t i = 0; i < most; ++i) {
    const Slot other = links(full, level)[i];
    order.push_back({cosine(full, other), other});
  }
  order.push_back({cosine(full, newcomer), newcomer});
  std::sort(order.begin(), order.end(), better);
  std::vector<Slot> kept;
  std::vector<Slot> covered;
  for (const Scored& candidate : order) {
    const bool is_covered = std::any_of(kept.begin(), kept.end(),
                                        [&](Slot other) { return cosine(candidate.slot, other) > candidate.score; });
    (is_covered ? covered : kept).push_back(candidate.slot);
  }
  for (auto least = covered.rbegin(); least != covered.rend(); ++least) {
    if (*least == newcomer) return false;
    if (degree(*least, level) <= links_kept) continue;
    unlink(full, *least, level);
    return true;
  }
  for (auto least = kept.rbegin(); least != kept.rend(); ++least) {
    if (*least == newcomer) return false;
    if (degree(*least, level) <= links_kept) continue;
    unlink(full, *least, level);
    return true;
  }
  return false;
}

void GraphEditor::unlink(Slot a, Slot b, int level) {
  drop_from(a, b, level);
  drop_from(b, a, level);
}

void GraphEditor::drop_from(Slot list_of, Slot gone, int level) {
  Slot* list = edit(list_of, level);
  Slot* const end = list + links_max(level);
  Slot* const rest = std::remove(list, end, gone);
  std::fill(rest, end, no_slot);
}

void GraphEditor::erase(Slot slot) {
  const int level = space_.level(slot);
  erased_.set(slot);
  std::vector<std::vector<Slot>> orphans;
  for (int l = 0; l <= level; ++l) {
    const Slot* list = links(slot, l);
    orphans.emplace_back(list, list + degree(slot, l));
    for (const Slot other : orphans.back()) unlink(slot, other, l);
    edit(slot, l);
  }
  if (slot == entry_) entry_ = space_.highest(erased_);
  for (int l = 0; l <= level; ++l) heal(orphans[static_cast<std::size_t>(l)], l);
}

// Each node that lost a neighbour is linked to another such node, the nearest pairs first; one with few links left
// searches for new ones like a new node.
void GraphEditor::heal(const std::vector<Slot>& orphans, int level) {
  struct Pair {
    float score;
    std::size_t a, b;
  };
  std::vector<Pair> pairs;
  for (std::size_t a = 0; a < orphans.size(); ++a) {
    for (std::size_t b = a + 1; b < orphans.size(); ++b) pairs.push_back({cosine(orphans[a], orphans[b]), a, b});
  }
  std::sort(pairs.begin(), pairs.end(), [](const Pair& x, const Pair& y) {
    return x.score != y.score ? x.score > y.score : std::pair(x.a, x.b) < std::pair(y.a, y.b);
  });
  std::vector<bool> healed(orphans.size());
  for (const Pair& pair : pairs) {
    if (healed[pair.a] && healed[pair.b]) continue;
    const Slot a = orphans[pair.a], b = orphans[pair.b];
    const Slot* list = links(a, level);
    if (std::find(list, list + links_max(level), b) != list + links_max(level)) continue;
    if (degree(a, level) == links_max(level) || degree(b, level) == links_max(level)) continue;
    link(a, b, level);
    healed[pair.a] = healed[pair.b] = true;
  }
  for (const Slot orphan : orphans) {
    if (degree(orphan, level) < links_kept) reconnect(orphan, orphans, level);
  }
}

// The search begins at the nodes that lost the same neighbour and at the entry. A descent from the entry would lead to
// the node itself, whose reachability is in doubt.
void GraphEditor::reconnect(Slot slot, const std::vector<Slot>& orphans, int level) {
  widen(space_.code(slot), space_.padded(), wide_.data());
  const Target target(space_, wide_.data());
  visited_.clear();
  visited_.set(slot);
  Beam beam(build_width);
  const auto start_at = [&](Slot start) {
    if (visited_.insert(start)) beam.add(target.score(start));
  };
  for (const Slot orphan : orphans) start_at(orphan);
  start_at(entry_);
  if (beam.size() == 0) {
    Bitmap others = erased_;
    others.set(slot);
    if (const Slot start = space_.highest(others); start != no_slot && space_.level(start) >= level) start_at(start);
  }
  search_level(
      target, [&](Slot s) { return links(s, level); }, links_max(level), visited_, beam);
  connect(slot, level, beam);
}

}  // namespace muniment::retrieval::vec
