// Reads the expected content of the search indexes: the revisions of documents, each with its passages.
// corpus_tables.hpp checks these rows against the log.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "verify/postgres/postgres.hpp"

namespace muniment::verify {

inline constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

// Filter fields that an index stores with each passage.
struct IndexedFacts {
  std::int64_t valid_from = 0;
  std::int64_t valid_to = never;  // end of a closed revision
  std::int64_t time_us = 0;
  std::uint64_t labels = 0;  // a digest: digest_of_terms in the lexical index, digest_of_labels in the vector shard
};

struct IndexedRevision {
  std::int64_t seq = 0;
  std::int64_t first_chunk = 0, chunks = 0;
  std::int64_t valid_to = never;    // seq of the event that ended it
  std::int64_t removed_at = never;  // seq of the event that erased or revoked it
  std::int64_t time_us = 0;
  std::size_t corpus = 0;  // index into IndexRows::corpora
  std::uint64_t terms = 0, labels = 0;
};

struct IndexRows {
  std::int64_t next_seq = 0;  // position of the follower that writes the rows; -1: the database has no such tables
  std::vector<std::string> corpora;
  std::vector<IndexedRevision> revisions;  // ordered by first_chunk; revisions without passages are left out
  std::int64_t chunks_end = 1;             // one more than the last chunk's id

  const IndexedRevision* of(std::int64_t chunk) const;  // returns nullptr if no revision contains the chunk
};

// Both functions accept labels or terms in any order and ignore duplicates.
std::uint64_t digest_of_terms(std::vector<std::string> terms);
std::uint64_t digest_of_labels(std::vector<std::uint64_t> labels);
std::uint64_t label_number(std::string_view label);  // source: docs/format.md, Vector shard

// Reads the rows in the connection's transaction. Errors: unavailable.
Result<IndexRows> read_index_rows(Connection& connection, std::int64_t log_no);

}  // namespace muniment::verify
