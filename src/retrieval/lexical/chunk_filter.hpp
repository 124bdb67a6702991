// Which chunks of a Xapian database pass a filter: asked of one chunk after the other, upwards, and best of few.
#pragma once

#include <xapian.h>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "retrieval/facts.hpp"
#include "retrieval/lexical/chunk_table.hpp"

namespace muniment::retrieval {

// Those of the labels that some chunk has. One that every chunk has says all: nothing is to be looked up for it.
struct Labels {
  Labels(const std::vector<std::string>& labels, const Xapian::Database& database);
  std::vector<std::string> terms;
  bool all = false;
};

class ChunkFilter {
 public:
  ChunkFilter(const Filter& filter, const Xapian::Database& database, const ChunkTables& tables);

  // The first chunk from `chunk` on that may pass; nullopt: none does.
  std::optional<ChunkId> first_from(ChunkId chunk);
  // Never of a chunk before one that was asked for.
  bool passes(ChunkId chunk);

 private:
  using Lists = std::vector<Xapian::PostingIterator>;  // of the labels of a group
  struct Range {                                       // of a number that each chunk has; both ends pass
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
