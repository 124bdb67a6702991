// The source of answers: the lanes of an engine, the passages of its chunks, and the feedback on them. The
// daemon's are its search child and the log's tables (retriever.cpp); a capsule has them in its file.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "retrieval/engine/engine.hpp"
#include "retrieval/query/query_plan.hpp"
#include "store/read/corpus_rows.hpp"

namespace muniment::retrieval {

class PassageSource {
 public:
  using Row = std::shared_ptr<const store::ChunkInDocument>;

  virtual ~PassageSource() = default;
  virtual Result<LaneAnswer> search(const LaneQuery& query) = 0;
  // Returns the rows of the chunks that are in the plan's corpora and were valid at its time.
  virtual Result<std::unordered_map<ChunkId, Row>> find(std::span<const ChunkId> chunks) = 0;
  // Returns the passage if it matches the hash that was recorded; nullopt if it differs or is missing. Errors:
  // unavailable.
  virtual Result<std::optional<std::string>> text_of(const store::ChunkInDocument& item) = 0;
  // Returns the mean feedback on chunks as of the plan's time.
  virtual Result<std::map<std::int64_t, double>> feedback_means(const std::vector<std::int64_t>& chunks) = 0;
  // Returns the revisions that these facts replaced, as far as they are found, in the same order.
  virtual Result<std::vector<store::CitedDocument>> cited(const std::vector<store::Citation>& citations) = 0;
  // True if a document may have been withdrawn since the lanes were read: a hit without a row is no fault then.
  virtual bool is_behind() const { return false; }
  // When a helper (a hook, a reranking server) must have answered.
  virtual Deadline deadline() const = 0;
};

// True if queries do not find the document any more because of its time limit. A query about an earlier state does.
bool has_expired(const store::DocumentRow& row, const QueryPlan& plan);
// True if the revision is in the plan's corpora, may be seen, and was valid at its time.
bool is_wanted(const store::DocumentRow& row, const QueryPlan& plan);

}  // namespace muniment::retrieval
