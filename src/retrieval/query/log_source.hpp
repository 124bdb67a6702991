// The daemon's source of answers: the search child, the rows of the document tables, and the artifacts.
#pragma once

#include "retrieval/child/search/search_client.hpp"
#include "retrieval/corpus/document_follower.hpp"
#include "retrieval/query/passage_source.hpp"
#include "store/files/artifact_files.hpp"
#include "store/read/reader.hpp"

namespace muniment::retrieval {

// Reads the passage and checks its hash. Errors: corrupt, not_found (then it is not a hit).
Result<std::string> read_passage(const store::ChunkInDocument& item, store::ArtifactFiles& files);

class LogSource final : public PassageSource {
 public:
  // All of these outlive it. `indexed_to`: the position of the indexes before the ranking.
  LogSource(const QueryPlan& plan, SearchClient& search, DocumentFollower& documents, store::ArtifactFiles& files,
            store::Reader& reader, Deadline deadline, std::int64_t indexed_to)
      : plan_(plan),
        search_(search),
        documents_(documents),
        files_(files),
        reader_(reader),
        deadline_(deadline),
        indexed_to_(indexed_to) {}

  Result<LaneAnswer> search(const LaneQuery& query) override { return search_.search(query, deadline_); }
  Result<std::unordered_map<ChunkId, Row>> find(std::span<const ChunkId> chunks) override;
  Result<std::optional<std::string>> text_of(const store::ChunkInDocument& item) override;
  Result<std::map<std::int64_t, double>> feedback_means(const std::vector<std::int64_t>& chunks) override;
  Result<std::vector<store::CitedDocument>> cited(const std::vector<store::Citation>& citations) override {
    return documents_.chunk_rows().cited(reader_, citations);
  }
  bool is_behind() const override { return documents_.last_change() >= indexed_to_; }
  Deadline deadline() const override { return deadline_; }

 private:
  const QueryPlan& plan_;
  SearchClient& search_;
  DocumentFollower& documents_;
  store::ArtifactFiles& files_;
  store::Reader& reader_;
  const Deadline deadline_;
  const std::int64_t indexed_to_;
};

}  // namespace muniment::retrieval
