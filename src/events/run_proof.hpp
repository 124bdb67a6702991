// The proof of a whole run. The run's events provide their own leaves; the rest of the tree is provided by the fewest
// perfect subtrees without any of these leaves. Together they yield the root. Node (level, index) covers the leaves
// [index·2^level, (index+1)·2^level).
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

namespace muniment::events {

struct TreePlace {
  int level = 0;
  std::int64_t index = 0;
  auto operator<=>(const TreePlace&) const = default;
};

// The seqs of a run's events in ascending order, as spans: a run that wrote alone is one span of any length.
class LeafSpans {
 public:
  struct Span {
    std::int64_t from = 0;  // inclusive
    std::int64_t to = 0;    // exclusive
  };

  // Returns false if `seq` is not greater than all before it.
  bool add(std::int64_t seq);
  const std::vector<Span>& spans() const { return spans_; }

 private:
  std::vector<Span> spans_;
};

// Returns the places of those subtrees in a tree of `size` leaves, by level and index. Every leaf must be below `size`.
std::vector<TreePlace> run_proof_places(const LeafSpans& leaves, std::int64_t size);

}  // namespace muniment::events
