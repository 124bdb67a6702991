// What the search indexes must hold: the revisions of documents as their rows have them, by the passages that are
// theirs. The rows themselves are held against the log (corpus_tables.hpp).
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

// What an index keeps beside a passage, so that a query can be filtered.
struct IndexedFacts {
  std::int64_t valid_from = 0;
  std::int64_t valid_to = never;  // of one that is closed
  std::int64_t time_us = 0;
  std::uint64_t labels = 0;  // a digest: digest_of_terms in the lexical index, digest_of_labels in the vector shard
};

struct IndexedRevision {
  std::int64_t seq = 0;
  std::int64_t first_chunk = 0, chunks = 0;
  std::int64_t valid_to = never;    // the event that ended it
  std::int64_t removed_at = never;  // the event that erased or revoked it
  std::int64_t time_us = 0;
  std::size_t corpus = 0;  // in IndexRows::corpora
  std::uint64_t terms = 0, labels = 0;
};

struct IndexRows {
  std::int64_t next_seq = 0;  // of the follower that writes the rows; -1: there are no such tables
  std::vector<std::string> corpora;
  std::vector<IndexedRevision> revisions;  // by first_chunk; those without passages are left out
  std::int64_t chunks_end = 1;             // behind the last chunk's id

  const IndexedRevision* of(std::int64_t chunk) const;  // nullptr: no revision has it
};

// Both take the labels, or terms, in any order; twice counts once.
std::uint64_t digest_of_terms(std::vector<std::string> terms);
std::uint64_t digest_of_labels(std::vector<std::uint64_t> labels);
std::uint64_t label_number(std::string_view label);  // docs/format.md, Vector shard

// As of the connection's transaction. Errors: unavailable.
Result<IndexRows> read_index_rows(Connection& connection, std::int64_t log_no);

}  // namespace muniment::verify
