// The follower "document": keeps the tables corpus, document, chunk and feedback (docs/format.md, Rows).
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

// What an event does to documents; nullopt: nothing, or it was erased. A list of chunks that is an artifact is read,
// and so is the text of an event. `runs` sees every event of the types that concern them, in the order of the log.
Result<std::optional<store::CorpusChange>> corpus_change(const events::Event& event, IndexedRuns& runs,
                                                         store::Reader& reader, store::ArtifactFiles& files);

class DocumentFollower final : public store::Follower {
 public:
  DocumentFollower(Options options, const store::Tail& tail, store::ArtifactFiles& files);
  ~DocumentFollower() override { stop(); }

  // Before the start: finds out what the last change was, so that what was answered before is known to stand.
  void look_back();

  // Somebody changed a document by the event at `seq`; from any thread.
  void changed_at(std::int64_t seq);
  // Until the tables hold every change that was noted: what was acknowledged is there. Errors: deadline_exceeded.
  Status wait_for_changes(Deadline deadline);
  // The corpora there are, with their owners.
  using Owners = std::map<std::string, std::string>;
  Result<std::shared_ptr<const Owners>> owners(store::Reader& reader);
  // Whether anybody ever gave feedback: most logs have none, and then no query need look for it.
  Result<bool> has_feedback(store::Reader& reader);

  store::ChunkRows& chunk_rows() { return chunk_rows_; }
  // Called on its thread when texts were erased or revoked.
  std::function<void()> on_erased;

  // The last change that the tables are known to hold or to lack; -1: none since the start.
  std::int64_t last_change() const { return last_change_.load(std::memory_order_acquire); }

 protected:
  Result<store::FollowedRows> apply(const std::vector<store::EventPtr>& events, store::Reader& reader) override;
  void written(const store::FollowedRows& rows) override;

 private:
  void note(const std::vector<store::CorpusChange>& changes);

  const store::LogPlace place_;
  store::ArtifactFiles& files_;
  IndexedRuns runs_;
  store::ChunkRows chunk_rows_;
  std::atomic<std::int64_t> last_change_;
  std::mutex known_mutex_;
  std::shared_ptr<const Owners> owners_;  // nullptr: not read yet
  std::optional<bool> has_feedback_;      // nullopt: likewise
};

}  // namespace muniment::retrieval
