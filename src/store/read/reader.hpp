// Reads the database. Each thread uses its own Reader with its own connection. Every function runs one named statement
// and returns `unavailable` if Postgres does not answer.
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
  std::optional<std::int64_t> from_run_seq;  // inclusive; requires run_no
  std::optional<std::int64_t> to_run_seq;    // inclusive; requires run_no
  std::vector<std::string> types;            // exact, or with a trailing *
  std::optional<std::string> step_id;
  std::optional<std::string> actor;
  std::optional<events::Origin> origin;
  std::optional<Time> since;  // recorded_at >=
  std::optional<Time> until;  // recorded_at <
  bool newest_first = false;
  bool archived_bodies = true;  // false: archived events are returned without their bodies, and no file is read
};

struct RunFilter {
  std::optional<std::string> status;
  std::optional<std::string> agent;
  std::optional<std::string> labels;  // a JSON object that the run's labels must contain
  std::optional<Time> since;          // started at or after; an imported run by the times of its source
  std::optional<Time> until;          // started before
  std::optional<std::string> parent;
  std::optional<std::string> owner;  // only runs of this actor
  std::optional<std::string> external_id;
  std::optional<std::int64_t> before_run_no;  // the cursor: newest first
};

struct EvidenceFilter {
  std::optional<std::string> run_id;
  std::optional<std::string> type;
  std::optional<std::string> task_id;
  std::optional<std::string> validator;  // the actor, or the validator_id
  std::int64_t after_seq = -1;           // the cursor; -1: from the first
  bool of_commands = false;              // only evidence of recorded commands, the newest first
  bool held = true;                      // against the log; false: for comparisons with evidence that is judged itself
};

// Conditions under which evidence counts, from the body of its event.
struct EvidenceTerms {
  std::int64_t seq = -1;
  std::optional<std::int64_t> expires_in_seconds;
  std::optional<std::string> artifacts{};  // JSON: ids of the artifacts on which it rests
  std::optional<std::string> depends_on;   // JSON array of ids, as sent
};
EvidenceTerms terms_of(const events::Event& recorded);

// The recorded or estimated cost of a model's answer.
struct AnswerCost {
  std::int64_t place = -1;  // the cursor
  std::int64_t seq = -1;    // of the model.answered event
  std::string model;
  std::string amount;  // decimal text
  std::string currency;
  std::string basis;  // "recorded", or "prices " and the version of the price list
};

// The use of evidence by one run, without its content.
struct EvidenceUse {
  std::int64_t seq = -1;
  Uuid evidence_id;
  std::string run_id;
  std::string actor;
  Time created_at;
};

// The events of a task.
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

// Totals of the tables of a log. The size is that of the whole database.
struct Totals {
  std::int64_t runs_open = 0, runs_ended = 0, runs_halted = 0;
  std::int64_t artifacts = 0, artifact_bytes = 0;
  std::int64_t database_bytes = 0;
};

class Reader {
 public:
  explicit Reader(const LogPlace& place, DatabaseRole role = DatabaseRole::writer);
  ~Reader();
  // Returns a reader for another log of the same database, on the same connection. It belongs to this reader and its
  // thread.
  Reader& of(const LogPlace& other);
  Connection& connection();
  const LogPlace& place() const;
  std::int16_t log_no() const;

  // Reads of events.
  Result<std::vector<events::Event>> events(const EventFilter& filter, std::size_t limit,
                                            std::size_t body_bytes_max = SIZE_MAX);
  Result<std::optional<events::Event>> event_at(std::int64_t seq);
  // Holds events, as read here, against the log's tree: their bodies, their entries and their leaves. Returns those
  // that are not what was recorded, by seq, each with its error: corrupt. Errors: unavailable or deadline_exceeded if
  // it is not known yet for one of them, within ten seconds for all.
  Result<std::map<std::int64_t, Error>> differing(const std::vector<events::Event>& events);
  // Returns the first of these errors.
  Status confirm(const std::vector<events::Event>& events);
  // Returns what was read here, once it is confirmed.
  Result<std::optional<events::Event>> confirmed(Result<std::optional<events::Event>> read);
  // Returns the first events of a span, which is committed, as the log recorded them: confirmed, and none missing
  // between them. Errors: also corrupt.
  Result<std::vector<events::Event>> recorded_events(SeqSpan span, std::size_t limit, std::size_t body_bytes_max);
  // Holds evidence that was read here against its events. Errors: corrupt, unavailable.
  Status confirm(const std::vector<EvidenceRow>& evidence);
  // The same for snapshots. Errors: corrupt, unavailable.
  Status confirm(const std::vector<SnapshotRow>& snapshots);
  // Holds each event of the filter's run, without its body, against the log's tree: what the filter leaves out might be
  // an event whose type, step, actor or time was changed. `from_seq` and `to_seq` are inclusive.
  Status confirm_run(const EventFilter& filter, std::int64_t from_seq, std::int64_t to_seq);
  // Checks that the table holds every event of a run from `from_run_seq` on, at least up to `next_run_seq`. Does
  // nothing without the log's tree. Errors: corrupt.
  Status check_run(std::int64_t run_no, std::int64_t from_run_seq, std::int64_t next_run_seq);
  // Checks that the ledger has a row of the run for each of its claims (evidence: false) or records of evidence. Does
  // nothing without the log's tree. Errors: corrupt.
  Status check_ledger(std::int64_t run_no, std::string_view run_id, bool evidence);
  // Returns the number of events in the table.
  Result<std::int64_t> event_count();
  Result<std::optional<events::Event>> event_of_run(std::int64_t run_no, std::int64_t run_seq);
  Result<std::optional<events::Event>> event_by_id(std::int64_t run_no, const Uuid& event_id);
  // Returns events from one snapshot, unordered and without their bodies; unknown ids are omitted.
  Result<std::vector<events::Event>> events_by_ids(std::int64_t run_no, const std::vector<Uuid>& event_ids);
  // Returns the text of an event; nullptr if it has no body. Errors: corrupt if a file is not what the log recorded.
  Result<std::shared_ptr<const EventText>> event_text(const events::Event& event);
  // Returns the run_hash to which this event's entry is chained: that of the preceding event in its run, or zeros for
  // the first. Errors: corrupt if the preceding event is missing.
  Result<Hash> previous_run_hash(const events::Event& event);
  Result<std::int64_t> log_size();
  // Returns the last seq with recorded_at <= time; -1 if there is none.
  Result<std::int64_t> seq_as_of(Time time);
  // Returns whether no event with an earlier or equal recorded_at can be appended any more: the clock has passed the
  // time, and no event numbered by then is in flight, for which this waits briefly. For a clock that was set back,
  // existing later events prove nothing, except the last event of a closed log. Errors: unavailable if such an event
  // stays in flight.
  Result<bool> has_passed(Time time, const Clock& clock, const Tail& tail, Deadline deadline);

  // Reads of runs. `load_run` reads the head of a run for the directory; nullptr: no such run. It searches the table
  // `run` and the events that the follower has not processed yet. For a run with at most run_ids_loaded_max events it
  // also loads the event ids.
  Result<std::shared_ptr<Run>> load_run(std::string_view run_id);
  Result<std::optional<RunRow>> run(std::string_view run_id);
  // Returns the events that determine a run's row (run_row.hpp), in order.
  Result<std::vector<events::Event>> life_of(std::int64_t run_no);
  Result<std::optional<RunRow>> run_by_no(std::int64_t run_no);
  // Returns the run_seq after the run's last event in the table, which may be visible slightly before the append thread
  // learns of its commit.
  Result<std::int64_t> next_run_seq(std::int64_t run_no);
  Result<std::vector<RunRow>> runs(const RunFilter& filter, std::size_t limit);
  // Returns the known costs of a run's model answers that the follower "report" has processed, after the cursor; -1:
  // from the first.
  Result<std::vector<AnswerCost>> answer_costs(std::int64_t run_no, std::int64_t after, std::size_t limit);
  // Returns the open runs, without _log, whose last event has a seq in [from, end) and is not run.interrupted. It reads
  // the log itself, and so covers runs that the table lacks.
  Result<std::vector<std::string>> runs_last_active(std::int64_t from, std::int64_t end);

  // Reads of artifacts, manifests, snapshots and the ledger.
  Result<std::optional<ArtifactRow>> artifact(const Uuid& artifact_id);
  Result<std::vector<ArtifactRow>> artifacts(const std::vector<Uuid>& artifact_ids);  // existing ones, in any order
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
  // Returns each run's use of the evidence, in order. `owner`: excludes runs that the table `run` assigns to another
  // owner.
  Result<std::vector<EvidenceRow>> evidence_uses(const Uuid& evidence_id, std::optional<std::string> run_id,
                                                 const std::optional<std::string>& owner, std::size_t limit);
  // Returns the run's use of the target of exactly this pointer. `actor`: only uses of this actor.
  Result<std::optional<EvidenceRow>> evidence_of_pointer(std::string_view run_id, std::string_view pointer,
                                                         const std::optional<std::string>& actor);
  // Returns uses of evidence with this content before `before_seq`, in order. Erased evidence has no hash.
  Result<std::vector<EvidenceUse>> evidence_with_hash(const Hash& hash, std::int64_t before_seq, std::size_t limit);
  // Returns the newest evidence that the daemon derived from a recorded command with this `command.suite` and that
  // completed a task. `owner`: excludes runs that the table `run` assigns to another owner.
  Result<std::optional<EvidenceRow>> accepted_of_suite(std::string_view suite, const std::optional<std::string>& owner);
  Result<std::vector<EvidenceLinkRow>> evidence_links(const std::vector<Uuid>& claim_ids);  // in order
  Result<std::set<std::string>> needed(
      const std::vector<std::string>& pointers);  // returns the pointers on which something in a run depends
  // Returns the dependencies of a run's claims, evidence and manifests, by pointer.
  Result<std::vector<PointerRow>> pointers_of_run(std::string_view run_id, std::optional<std::string> after,
                                                  std::size_t limit);

  // Returns the dependencies of one piece of evidence in all runs.
  Result<std::vector<PointerRow>> pointers_needed_by(const Uuid& evidence_id);

  // Reads of tasks. The body of the task.opened event holds their text.
  Result<std::optional<TaskPlace>> task(std::string_view run_id, std::string_view task_id);
  // Returns tasks in the order in which they were opened. `completed` filters by completion; nullopt: all. `after_seq`
  // -1: from the first. A task whose task.opened event was erased is not listed.
  Result<std::vector<TaskPlace>> tasks(std::string_view run_id, std::optional<bool> completed, std::int64_t after_seq,
                                       std::size_t limit);
  // Returns which of these tasks are open, in the order in which they were opened.
  Result<std::vector<TaskPlace>> open_tasks(std::string_view run_id, const std::vector<std::string>& task_ids);
  // Returns the terms of evidence that was read here, from the same events against which it is held. Errors: corrupt.
  Result<std::vector<EvidenceTerms>> evidence_terms(const std::vector<EvidenceRow>& rows);
  // Returns which of these evidence.recorded events completed a task, with the task, ordered by evidence_seq.
  Result<std::vector<TaskEvidenceRow>> evidence_spent(const std::vector<std::int64_t>& evidence_seqs);
  // Returns the first other task that was completed with this evidence: by any use of it, by evidence from the same
  // recorded command, or, if `by_content`, by evidence with the same hash; only evidence of the same actor counts.
  Result<std::optional<TaskEvidenceRow>> spent_on_another(const EvidenceRow& evidence, bool by_content,
                                                          std::string_view run_id, std::string_view task_id);

  // Return all rows of a run whose events are in `span`, in the order of their events.
  Result<std::vector<ArtifactRow>> artifacts_in(std::string_view run_id, SeqSpan span, std::size_t limit);
  Result<std::vector<ManifestRow>> manifests_in(std::string_view run_id, SeqSpan span, std::size_t limit);
  Result<std::vector<SnapshotRow>> snapshots_in(std::int64_t run_no, SeqSpan span, std::size_t limit);
  Result<std::vector<ClaimRow>> claims_in(std::string_view run_id, SeqSpan span, std::size_t limit);
  Result<std::vector<EvidenceRow>> evidence_in(std::string_view run_id, SeqSpan span, std::size_t limit);

  // Reads of corpora. `as_of` selects the revisions current at that seq; nullopt: those current now.
  Result<std::vector<CorpusRow>> corpora(const std::optional<std::string>& owner, bool counted);
  Result<std::optional<CorpusRow>> corpus(std::string_view corpus);
  Result<std::optional<DocumentRow>> document(std::string_view corpus, std::string_view document,
                                              std::optional<std::int64_t> as_of = {});
  // Returns documents by id; unknown ids are omitted.
  Result<std::map<std::string, DocumentRow>> current_documents(std::string_view corpus,
                                                               const std::vector<std::string>& documents);
  // Returns whether a document of the corpora has, or had, the tag.
  Result<bool> has_tag(const std::vector<std::string>& corpora, std::string_view tag);
  // Returns whether the corpora have a current document that comes from one of the sources (empty: from any).
  Result<bool> has_documents(const std::vector<std::string>& corpora, const std::vector<std::string>& sources);
  Result<bool> has_feedback();
  // Returns the newest row with that revision, preferring a current one.
  Result<std::optional<DocumentRow>> document_revision(std::string_view corpus, std::string_view document,
                                                       std::string_view revision);
  Result<std::vector<DocumentRow>> documents(std::string_view corpus, const std::optional<std::string>& after,
                                             std::size_t limit);
  Result<std::vector<DocumentRow>> document_history(std::string_view corpus, std::string_view document,
                                                    std::optional<std::int64_t> before,
                                                    std::size_t limit);  // newest first
  // Returns the lives of revisions from `from_seq` on, in order: seq, names, chunks and ends.
  Result<std::vector<DocumentRow>> document_lives(std::int64_t from_seq, std::size_t limit);
  Result<std::vector<DocumentRow>> documents_added(SeqSpan span,
                                                   std::size_t limit);  // revised within the span, in order
  Result<std::vector<DocumentRow>> documents_ended(SeqSpan span);       // ended or removed within the span
  Result<std::vector<ChunkRow>> chunks_of(const DocumentRow& document);
  Result<std::vector<ChunkInDocument>> chunks(
      const std::vector<std::int64_t>& chunk_ids);                                   // existing ones, in any order
  Result<std::vector<CitedDocument>> cited(const std::vector<Citation>& citations);  // one for each citation, in order
  Result<std::vector<ChunkInDocument>> chunks_of_documents(const std::vector<std::int64_t>& seqs);
  // Returns the chunks of a corpus after `after`, in order, limited to revisions before `before_seq` that the indexes
  // hold.
  Result<std::vector<ChunkInDocument>> chunks_of_corpus(std::string_view corpus, std::int64_t after,
                                                        std::int64_t before_seq, bool current_only, std::size_t limit);
  // Returns which of these revisions were carried over from closed logs, by seq, with the time of their first
  // recording; nullopt: that log is not in this database.
  Result<std::map<std::int64_t, std::optional<Time>>> carried(const std::vector<std::int64_t>& seqs);
  // Counts the documents of a source. `newer_log`: excludes those that this later log took over.
  Result<std::int64_t> count_of_source(std::string_view source, const std::optional<std::string>& owner,
                                       std::optional<std::int16_t> newer_log = {});
  // Returns the revocations in this log, by seq. The result is cached and extended with each call.
  Result<const std::map<std::int64_t, Revocation>*> revocations();
  // Returns the mean feedback on those chunks that have any, up to `before_seq`.
  Result<std::map<std::int64_t, double>> feedback_means(const std::vector<std::int64_t>& chunk_ids,
                                                        std::int64_t before_seq);

  // Reads of followers.
  Result<std::int64_t> last_corpus_change();                      // up to the position of the tables; -1: none
  Result<std::int64_t> follower_position(std::string_view name);  // 0 if it never ran
  Result<std::vector<std::pair<std::string, std::int64_t>>> follower_positions();
  Result<Totals> totals();  // scans the tables run and artifact

  struct Impl;  // store/read/reader_impl.hpp, only for the files of the Reader

 private:
  explicit Reader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muniment::store
