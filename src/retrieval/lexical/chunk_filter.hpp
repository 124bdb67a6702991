// Decides which chunks of a Xapian database pass a filter. Chunks are tested in ascending order, preferably few.
#pragma once

#include <xapian.h>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "retrieval/facts.hpp"
#include "retrieval/lexical/chunk_table.hpp"

namespace muniment::retrieval {

// The labels that some chunk has. A label that every chunk has sets `all`, which needs no look-up.
struct Labels {
  Labels(const std::vector<std::string>& labels, const Xapian::Database& database);
  std::vector<std::string> terms;
  bool all = false;
};

class ChunkFilter {
 public:
  ChunkFilter(const Filter& filter, const Xapian::Database& database, const ChunkTables& tables);

  // Returns the first chunk from `chunk` on that may pass; nullopt if there is none.
  std::optional<ChunkId> first_from(ChunkId chunk);
  // Must not be called for a chunk below an earlier one.
  bool passes(ChunkId chunk);

 private:
  using Lists = std::vector<Xapian::PostingIterator>;  // posting lists of the labels in a group
  struct Range {  // a range of a number that each chunk has; both ends are included
    Xapian::ValueIterator at, end;
    std::int64_t least = 0, most = 0;
    bool of_time = false;
  };
  bool in_range(Range& range, ChunkId chunk) const;
  void require(const Xapian::Database& database, unsigned slot, std::int64_t least, std::int64_t most);

  const ChunkTables& tables_;
  std::vector<Lists> all_of_;
  Lists none_of_;
  std::vector<Range> ranges_;
  bool nothing_ = false;
};

}  // namespace muniment::retrieval
