// Searches the live vectors by a scan or by the graph.
#include "retrieval/vector/live_search.hpp"

#include <algorithm>
#include <bit>

#include "retrieval/vector/beam.hpp"

namespace muniment::retrieval::vec {
namespace {

// The cost of the graph in vectors of a scan: a node of the beam needs some ten distances, each a cache miss, while a
// scan reads sequentially. Measured at 100,000 vectors of 384 dimensions.
constexpr std::size_t scanned_for_a_descent = 300;
constexpr std::size_t scanned_for_a_node = 40;

// Returns the default beam: recall@10 of 0.98 at 100,000 vectors.
std::size_t default_beam(std::size_t k) { return 64 + 4 * k; }

void scan(const Space& space, const Target& target, const Bitmap& passing, BestChunks& best) {
  constexpr std::size_t ahead = 4;
  for (std::size_t i = 0; i < passing.words(); ++i) {
    Slot slots[Bitmap::word_bits];
    std::size_t count = 0;
    for (std::uint64_t rest = passing.word(i); rest != 0; rest &= rest - 1) {
      slots[count++] = static_cast<Slot>(i * Bitmap::word_bits) + static_cast<Slot>(std::countr_zero(rest));
    }
    for (std::size_t at = 0; at < count; ++at) {
      if (at + ahead < count) target.prefetch(slots[at + ahead]);
      const float score = target.score(slots[at]).score;
      if (score >= best.threshold()) best.add(score, space.chunk(slots[at]));
    }
  }
}

// The graph has no filter, so the beam is wider by the inverse of the share that passes. Every vector nearer than the
// beam's last node is in the beam, so its passing vectors are those that a filtered walk would find.
Beam search_graph(const Space& space, const Target& target, std::size_t width) {
  const auto links_at = [&](Slot slot, int level) { return space.links(slot, level); };
  Beam beam(width);
  const Slot entry = space.header.entry;
  beam.add(descend(target, links_at, entry, space.level(entry), 0));
  Bitmap visited(space.live().words() * Bitmap::word_bits);
  search_level(
      target, [&](Slot slot) { return space.links(slot, 0); }, links_bottom, visited, beam);
  return beam;
}

}  // namespace

void BestChunks::add(float score, ChunkId id) {
  const Chunk chunk{score, id};
  if (full()) {
    if (!(chunk < heap_.front())) return;
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.back() = chunk;
  } else {
    heap_.push_back(chunk);
  }
  std::push_heap(heap_.begin(), heap_.end());
}

std::vector<BestChunks::Chunk> BestChunks::sorted() && {
  std::sort_heap(heap_.begin(), heap_.end());
  return std::move(heap_);
}

void search_live(const Space& space, const Probe& probe, const CompiledFilter& filter, const VectorSearch& how,
                 BestChunks& best) {
  Bitmap narrowed;
  if (!filter.passes_all()) narrowed = filter.live_slots(space);
  const Bitmap& passing = filter.passes_all() ? space.live() : narrowed;
  const std::size_t all = space.live_count(), count = filter.passes_all() ? all : narrowed.count();
  const std::size_t wanted = std::min(how.k, count);
  if (wanted == 0) return;
  const Target target(space, probe.values.data());
  const std::size_t beam = std::max(how.k, how.beam != 0 ? how.beam : default_beam(how.k));
  const double width = static_cast<double>(beam) * static_cast<double>(all) / static_cast<double>(count);
  const double graph_cost = scanned_for_a_descent + scanned_for_a_node * width;
  if (!how.exact && graph_cost < static_cast<double>(count)) {
    const Beam found = search_graph(space, target, static_cast<std::size_t>(width));
    std::size_t passed = 0;
    for (std::size_t rank = 0; rank < found.size(); ++rank) {
      if (passing.test(found[rank].slot)) ++passed;
    }
    // The vectors that pass may be far from the query. If the beam found too few of them, all are scanned.
    if (passed >= wanted) {
      for (std::size_t rank = 0; rank < found.size(); ++rank) {
        if (passing.test(found[rank].slot)) best.add(found[rank].score, space.chunk(found[rank].slot));
      }
      return;
    }
  }
  scan(space, target, passing, best);
}

}  // namespace muniment::retrieval::vec
