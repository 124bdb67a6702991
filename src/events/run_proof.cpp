// Computes the subtrees that complete the proof of a run.
#include "events/run_proof.hpp"

#include <algorithm>
#include <bit>

namespace muniment::events {
namespace {

// Covers [from, to) with the fewest perfect subtrees: at each leaf, the largest one that starts there and does not
// exceed the end. Their siblings hold a leaf of the run or are outside, so no two of them could be merged.
void cover(std::int64_t from, std::int64_t to, std::vector<TreePlace>& places) {
  while (from < to) {
    const int fits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(to - from))) - 1;
    const int aligned = std::countr_zero(static_cast<std::uint64_t>(from));  // 64 for leaf 0
    const int level = std::min(fits, aligned);
    places.push_back({level, from >> level});
    from += std::int64_t{1} << level;
  }
}

}  // namespace

bool LeafSpans::add(std::int64_t seq) {
  if (spans_.empty() ? seq < 0 : seq < spans_.back().to) return false;
  if (spans_.empty() || seq > spans_.back().to) {
    spans_.push_back({seq, seq + 1});
  } else {
    ++spans_.back().to;
  }
  return true;
}

std::vector<TreePlace> run_proof_places(const LeafSpans& leaves, std::int64_t size) {
  std::vector<TreePlace> places;
  std::int64_t done = 0;
  for (const LeafSpans::Span& span : leaves.spans()) {
    cover(done, span.from, places);
    done = span.to;
  }
  cover(done, size, places);
  std::sort(places.begin(), places.end());
  return places;
}

}  // namespace muniment::events
