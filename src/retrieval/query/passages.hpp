// The passages of candidates: their rows, whether the caller may see them, and their verified text.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "base/result.hpp"
#include "retrieval/facts.hpp"
#include "retrieval/query/query_plan.hpp"
#include "store/files/artifact_files.hpp"
#include "store/read/chunk_rows.hpp"
#include "store/read/reader.hpp"

namespace muniment::retrieval {

// True if queries do not find the document any more because of its time limit. A query about an earlier state does.
bool has_expired(const store::DocumentRow& row, const QueryPlan& plan);

class Passages {
 public:
  Passages(const QueryPlan& plan, store::Reader& reader, store::ChunkRows& rows, store::ArtifactFiles& files)
      : plan_(plan), reader_(reader), rows_(rows), files_(files) {}

  // Returns the rows of the chunks that are in the plan's corpora and were valid at its time.
  Result<std::unordered_map<ChunkId, store::ChunkRows::Row>> find(std::span<const ChunkId> chunks) const;

  // Returns its bytes if they match the hash in the log; nullopt if they differ or are missing. Errors: unavailable.
  Result<std::optional<std::string>> text_of(const store::ChunkInDocument& item) const;

 private:
  bool belongs(const store::ChunkInDocument& item) const;

  const QueryPlan& plan_;
  store::Reader& reader_;
  store::ChunkRows& rows_;
  store::ArtifactFiles& files_;
};

}  // namespace muniment::retrieval
