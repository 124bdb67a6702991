// Reading: one Reader a thread, each with its own connection. Every function is one named
// statement; all of them answer `unavailable` when Postgres does not.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "events/event.hpp"
#include "store/append/rows.hpp"
#include "store/append/tail.hpp"
#include "store/logs/log_place.hpp"
#include "store/logs/revocations.hpp"
#include "store/read/connection.hpp"
#include "store/read/corpus_rows.hpp"
#include "store/tables/runs.hpp"

namespace muniment::store {

struct EventFilter {
  std::optional<std::int64_t> run_no;
  std::int64_t from_seq = 0;                 // inclusive
  std::optional<std::int64_t> to_seq;        // inclusive
  std::optional<std::int64_t> from_run_seq;  // inclusive; needs run_no
  std::optional<std::int64_t> to_run_seq;    // inclusive; needs run_no
  std::vector<std::string> types;            // exact, or with a trailing *
  std::optional<std::string> step_id;
  std::optional<std::string> actor;
  std::optional<events::Origin> origin;
  std::optional<Time> since;  // recorded_at >=
  std::optional<Time> until;  // recorded_at <
  bool newest_first = false;
  bool archived_bodies = true;  // false: an archived event comes without its body, and no file is read
};

struct RunFilter {
  std::optional<std::string> status;
  std::optional<std::string> agent;
  std::optional<std::string> labels;  // a JSON object that the run's labels contain
  std::optional<Time> since;          // started_at >=
  std::optional<std::string> parent;
  std::optional<std::string> owner;  // only this actor's
  std::optional<std::string> external_id;
  std::optional<std::int64_t> before_run_no;  // the cursor: newest first
};

struct EvidenceFilter {
  std::optional<std::string> run_id;
  std::optional<std::string> type;
  std::optional<std::string> task_id;
  std::optional<std::string> validator;  // the actor, or the validator_id
  std::int64_t after_seq = -1;           // the cursor; -1: from the first
};

// One run's use of evidence, without what it says.
struct EvidenceUse {
  std::int64_t seq = -1;
  Uuid evidence_id;
  std::string run_id;
  std::string actor;
  Time created_at;
};

// Where the log tells of a task.
struct TaskPlace {
  std::string task_id;
  std::int64_t opened_seq = -1;  // -1: its task.opened event was erased
  std::optional<std::int64_t> completed_seq;
};

// Positions in the log: from inclusive, to exclusive.
struct SeqSpan {
  std::int64_t from = 0;
  std::int64_t to = 0;
};

// What the tables of a log come to. The sizes are the database's own.
struct Totals {
  std::int64_t runs_open = 0, runs_ended = 0, runs_halted = 0;
  std::int64_t artifacts = 0, artifact_bytes = 0;
  std::int64_t database_bytes = 0;
};

class Reader {
 public:
  explicit Reader(const LogPlace& place);
  ~Reader();
  // What reads another log of the same database, by the same connection; this reader's, and for the same thread.
  Reader& of(const LogPlace& other);
  Connection& connection();
  const LogPlace& place() const;
  std::int16_t log_no() const;

  // Events
  Result<std::vector<events::Event>> events(const EventFilter& filter, std::size_t limit,
                                            std::size_t body_bytes_max = SIZE_MAX);
  Result<std::optional<events::Event>> event_at(std::int64_t seq);
  Result<std::optional<events::Event>> event_of_run(std::int64_t run_no, std::int64_t run_seq);
  Result<std::optional<events::Event>> event_by_id(std::int64_t run_no, const Uuid& event_id);
  // All as they are at one moment, in no order, without their bodies; those that are not there are left out.
  Result<std::vector<events::Event>> events_by_ids(std::int64_t run_no, const std::vector<Uuid>& event_ids);
  // What it says; nullptr for an event without a body.
  Result<std::shared_ptr<const EventText>> event_text(const events::Event& event);
  // The run_hash that this event's entry is chained to: that of the event before it in its run, zeros for the first.
  // Errors: corrupt when that event is missing.
  Result<Hash> previous_run_hash(const events::Event& event);
  Result<std::int64_t> log_size();
  // The last seq with recorded_at <= time; -1 if there is none.
  Result<std::int64_t> seq_as_of(Time time);
  // Whether nothing can come any more that is as early: the clock says that the time has passed, and nothing that was
  // numbered by then is in flight, which is waited for a moment. Where the clock was set back, what is in the log
  // already says nothing: only a closed log's last event does. Errors: unavailable, when it is in flight for longer.
  Result<bool> has_passed(Time time, const Clock& clock, const Tail& tail, Deadline deadline);

  // Runs. `load_run` reads a head for the directory; nullptr: no such run. It looks in the table
  // `run` and in the events that the follower has not yet seen.
  // Of a run of at most run_ids_loaded_max events its ids are loaded too.
  Result<std::shared_ptr<Run>> load_run(std::string_view run_id);
  Result<std::optional<RunRow>> run(std::string_view run_id);
  // The events that make a run's row (run_row.hpp), in order.
  Result<std::vector<events::Event>> life_of(std::int64_t run_no);
  Result<std::optional<RunRow>> run_by_no(std::int64_t run_no);
  // Behind the run's last event in the table, which may be there a moment before the append thread hears that it is
  // committed.
  Result<std::int64_t> next_run_seq(std::int64_t run_no);
  Result<std::vector<RunRow>> runs(const RunFilter& filter, std::size_t limit);
  // The open runs whose last event has a seq from `from` on and below `end`, and is no run.interrupted; not _log. Of
  // the log itself: also those that the table has not come to.
  Result<std::vector<std::string>> runs_last_active(std::int64_t from, std::int64_t end);

  // Artifacts, manifests, snapshots, ledger
  Result<std::optional<ArtifactRow>> artifact(const Uuid& artifact_id);
  Result<std::vector<ArtifactRow>> artifacts(
      const std::vector<Uuid>& artifact_ids);  // those that there are, in any order
  Result<std::vector<ArtifactRow>> artifacts(std::string_view run_id, std::optional<std::string> step_id,
                                             std::optional<Uuid> after, std::size_t limit);
  Result<std::optional<ArtifactRow>> artifact_with_hash(std::string_view run_id, std::string_view step_id,
                                                        const Hash& hash);
  Result<std::optional<ManifestRow>> manifest(const Uuid& manifest_id);
  Result<std::vector<SnapshotRow>> snapshots(std::int64_t run_no, std::optional<std::int64_t> at_most_seq,
                                             std::size_t limit);  // newest first
  Result<std::vector<ClaimRow>> claims(std::string_view run_id, std::optional<Uuid> after, std::size_t limit);
  Result<std::optional<ClaimRow>> claim(const Uuid& claim_id);
  Result<std::vector<EvidenceRow>> evidence(const EvidenceFilter& filter, std::size_t limit);
  Result<std::vector<EvidenceRow>> evidence(std::optional<std::string> run_id, std::optional<std::string> type,
                                            std::int64_t after_seq, std::size_t limit);  // -1: from the first
  // Each run's use of it, in order. `owner`: without the runs that the table `run` knows to be somebody else's.
  Result<std::vector<EvidenceRow>> evidence_uses(const Uuid& evidence_id, std::optional<std::string> run_id,
                                                 const std::optional<std::string>& owner, std::size_t limit);
  // The run's use of what this very pointer names; `actor`: only this one's.
  Result<std::optional<EvidenceRow>> evidence_of_pointer(std::string_view run_id, std::string_view pointer,
                                                         const std::optional<std::string>& actor);
  // Uses of evidence with this content, in order, those before `before_seq`. What was erased has no hash.
  Result<std::vector<EvidenceUse>> evidence_with_hash(const Hash& hash, std::int64_t before_seq, std::size_t limit);
  // The newest evidence that the daemon made of a recorded command, whose content has this `command.suite`, and that
  // completed a task. `owner`: without the runs that the table `run` knows to be somebody else's.
  Result<std::optional<EvidenceRow>> accepted_of_suite(std::string_view suite, const std::optional<std::string>& owner);
  Result<std::vector<EvidenceLinkRow>> evidence_links(const std::vector<Uuid>& claim_ids);  // in order
  Result<std::set<std::string>> needed(const std::vector<std::string>& pointers);  // those that something needs
  // What a run's claims, evidence and manifests need, by pointer.
  Result<std::vector<PointerRow>> pointers_of_run(std::string_view run_id, std::optional<std::string> after,
                                                  std::size_t limit);

  // Tasks. Their words are in the body of their task.opened event.
  Result<std::optional<TaskPlace>> task(std::string_view run_id, std::string_view task_id);
  // In the order in which they were opened; `completed`: only those that are, or are not; nullopt: all. -1: from the
  // first. A task whose task.opened event was erased is not listed.
  Result<std::vector<TaskPlace>> tasks(std::string_view run_id, std::optional<bool> completed, std::int64_t after_seq,
                                       std::size_t limit);
  // Which of these evidence.recorded events completed a task, and which, in order of evidence_seq.
  Result<std::vector<TaskEvidenceRow>> evidence_spent(const std::vector<std::int64_t>& evidence_seqs);
  // The first other task that was completed with this evidence, by any of its uses, with evidence of the same recorded
  // command, or, where `by_content`, with evidence of the same hash; all of it of the same actor.
  Result<std::optional<TaskEvidenceRow>> spent_on_another(const EvidenceRow& evidence, bool by_content,
                                                          std::string_view run_id, std::string_view task_id);

  // All rows of a run whose events are in `span`, in the order of their events.
  Result<std::vector<ArtifactRow>> artifacts_in(std::string_view run_id, SeqSpan span, std::size_t limit);
  Result<std::vector<ManifestRow>> manifests_in(std::string_view run_id, SeqSpan span, std::size_t limit);
  Result<std::vector<SnapshotRow>> snapshots_in(std::int64_t run_no, SeqSpan span, std::size_t limit);
  Result<std::vector<ClaimRow>> claims_in(std::string_view run_id, SeqSpan span, std::size_t limit);
  Result<std::vector<EvidenceRow>> evidence_in(std::string_view run_id, SeqSpan span, std::size_t limit);

  // Corpora. `as_of`: what was current then; nullopt: what is current now.
  Result<std::vector<CorpusRow>> corpora(const std::optional<std::string>& owner, bool counted);
  Result<std::optional<CorpusRow>> corpus(std::string_view corpus);
  Result<std::optional<DocumentRow>> document(std::string_view corpus, std::string_view document,
                                              std::optional<std::int64_t> as_of = {});
  // By id; those that are not there are left out.
  Result<std::map<std::string, DocumentRow>> current_documents(std::string_view corpus,
                                                               const std::vector<std::string>& documents);
  Result<bool> has_feedback();
  // The newest row with that revision, a current one first.
  Result<std::optional<DocumentRow>> document_revision(std::string_view corpus, std::string_view document,
                                                       std::string_view revision);
  Result<std::vector<DocumentRow>> documents(std::string_view corpus, const std::optional<std::string>& after,
                                             std::size_t limit);
  Result<std::vector<DocumentRow>> document_history(std::string_view corpus, std::string_view document,
                                                    std::optional<std::int64_t> before,
                                                    std::size_t limit);  // newest first
  Result<std::vector<DocumentRow>> documents_added(SeqSpan span,
                                                   std::size_t limit);  // revised within the span, in order
  Result<std::vector<DocumentRow>> documents_ended(SeqSpan span);       // ended or removed within it
  Result<std::vector<ChunkRow>> chunks_of(const DocumentRow& document);
  Result<std::vector<ChunkInDocument>> chunks(
      const std::vector<std::int64_t>& chunk_ids);  // those that there are, in any order
  Result<std::vector<CitedDocument>> cited(const std::vector<Citation>& citations);  // one each, in order
  Result<std::vector<ChunkInDocument>> chunks_of_documents(const std::vector<std::int64_t>& seqs);
  // The chunks of a corpus after `after`, of revisions before `before_seq` that the indexes hold, in order.
  Result<std::vector<ChunkInDocument>> chunks_of_corpus(std::string_view corpus, std::int64_t after,
                                                        std::int64_t before_seq, bool current_only, std::size_t limit);
  // Documents that come from it; `newer_log`: those of them that this later log did not take over.
  // Of these revisions, by seq, those that were brought along from closed logs: when they were recorded there first;
  // nullopt: that log is not here.
  Result<std::map<std::int64_t, std::optional<Time>>> carried(const std::vector<std::int64_t>& seqs);
  Result<std::int64_t> count_of_source(std::string_view source, const std::optional<std::string>& owner,
                                       std::optional<std::int16_t> newer_log = {});
  // What was revoked in this log, by seq. It is kept, and read on from where it was.
  Result<const std::map<std::int64_t, Revocation>*> revocations();
  // The mean feedback on chunks, of those that have any, by what was said before `before_seq`.
  Result<std::map<std::int64_t, double>> feedback_means(const std::vector<std::int64_t>& chunk_ids,
                                                        std::int64_t before_seq);

  // Followers
  Result<std::int64_t> last_corpus_change();  // as far as its tables are written; -1: there was none
  Result<std::int64_t> follower_position(std::string_view name);  // 0 where it never ran
  Result<std::vector<std::pair<std::string, std::int64_t>>> follower_positions();
  Result<Totals> totals();  // reads the tables run and artifact from end to end

  struct Impl;  // store/read/reader_impl.hpp, for the files of the Reader alone

 private:
  explicit Reader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muniment::store
