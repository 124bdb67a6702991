// The follower "document": maintains the tables corpus, document, chunk and feedback (docs/format.md, Rows).
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "retrieval/corpus/run_events.hpp"
#include "store/files/artifact_files.hpp"
#include "store/read/chunk_rows.hpp"
#include "store/tables/follower.hpp"

namespace muniment::retrieval {

// Returns the change that an event makes to documents; nullopt if there is none or the event was erased. Reads a chunk
// list that is an artifact, and the text of an event. `runs` has to see every event of the types that concern it, in
// log order.
Result<std::optional<store::CorpusChange>> corpus_change(const events::Event& event, IndexedRuns& runs,
                                                         store::Reader& reader, store::ArtifactFiles& files);

class DocumentFollower final : public store::Follower {
 public:
  DocumentFollower(Options options, const store::Tail& tail, store::ArtifactFiles& files);
  ~DocumentFollower() override { stop(); }

  // Called before the start: determines the last change, so that earlier answers are known to be valid.
  void look_back();

  // Notes that the event at `seq` changed a document. Any thread.
  void changed_at(std::int64_t seq);
  // Returns why the documents of the log are refused: the log was changed, and is not the one that its writer knows.
  Status refused() const;
  // Names the tables that were found different from the log since the start; empty: none.
  std::string rebuilt();
  // Waits until the tables include every noted change, and so every acknowledged one. Errors: deadline_exceeded; those
  // of `refused`.
  Status wait_for_changes(Deadline deadline);
  // The existing corpora, with their owners.
  using Owners = std::map<std::string, std::string>;
  Result<std::shared_ptr<const Owners>> owners(store::Reader& reader);
  // Returns whether the log has any feedback. Most logs have none, so queries can skip it.
  Result<bool> has_feedback(store::Reader& reader);

  store::ChunkRows& chunk_rows() { return chunk_rows_; }
  // Called on the follower's thread after texts were erased or revoked.
  std::function<void()> on_erased;

  // Returns the last change that the tables include or are known to lack; -1: none since the start.
  std::int64_t last_change() const { return last_change_.load(std::memory_order_acquire); }

 protected:
  Result<store::FollowedRows> apply(const std::vector<store::EventPtr>& events, store::Reader& reader) override;
  Status begin(store::Reader& reader) override;
  void writing(const store::FollowedRows& rows, const store::CorpusEffects& effects, std::int64_t next_seq) override;
  void written(const store::FollowedRows& rows) override;

 private:
  void note(const std::vector<store::CorpusChange>& changes);
  Status load_lives(store::Reader& reader);
  Status check_events(store::Reader& reader);
  Status compare_with_log(store::Reader& reader);

  const store::LogPlace place_;
  const store::Tail& log_tail_;
  store::ArtifactFiles& files_;
  IndexedRuns runs_;
  store::ChunkRows chunk_rows_;
  std::optional<store::DocumentLives::Update> writing_;  // of the rows that are being committed
  std::int64_t writing_to_ = 0;                          // position after them
  std::atomic<std::int64_t> last_change_;
  std::mutex known_mutex_;
  std::string rebuilt_;
  std::shared_ptr<const Owners> owners_;  // nullptr: not read yet
  std::optional<bool> has_feedback_;      // nullopt: not read yet
};

}  // namespace muniment::retrieval
