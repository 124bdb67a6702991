// The passages behind candidates: what the tables say of a chunk, whether it is the caller's to see, and its verified
// text.
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

class Passages {
 public:
  Passages(const QueryPlan& plan, store::Reader& reader, store::ChunkRows& rows, store::ArtifactFiles& files)
      : plan_(plan), reader_(reader), rows_(rows), files_(files) {}

  // Those of the chunks that are in the plan's corpora and were valid at its time.
  Result<std::unordered_map<ChunkId, store::ChunkRows::Row>> find(std::span<const ChunkId> chunks) const;

  // Its bytes, if they have the hash of the log; nullopt where they do not, or are gone. Errors: unavailable.
  Result<std::optional<std::string>> text_of(const store::ChunkInDocument& item) const;

 private:
  bool belongs(const store::ChunkInDocument& item) const;

  const QueryPlan& plan_;
  store::Reader& reader_;
  store::ChunkRows& rows_;
  store::ArtifactFiles& files_;
};

}  // namespace muniment::retrieval
