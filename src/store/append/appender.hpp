// The append thread, the only writer of a log. It owns one connection, takes all queued requests (group commit; only
// requests whose sender does not wait are delayed briefly), numbers and hashes their events in memory, commits them in
// one transaction behind the epoch fence, and then answers. See docs/architecture.md, One append.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/config/standbys.hpp"
#include "base/result.hpp"
#include "events/event.hpp"
#include "store/append/rows.hpp"
#include "store/append/tail.hpp"
#include "store/append/written_end.hpp"
#include "store/logs/erasure_gate.hpp"
#include "store/tables/runs.hpp"

namespace muniment::store {

struct Addressed {
  std::shared_ptr<Run> run;
  events::NewEvent event;
  bool if_open = false;         // omitted unless the run is open (child.halted in a parent)
  bool unless_halted = false;   // omitted if the run is halted already
  bool with_previous = false;   // omitted if the preceding event of the request is (child.halted after its run.halted)
  bool refused_halted = false;  // refused if the run is halted, although its type is admitted (run.ended as a success)
  bool by_daemon = false;       // written by munimentd, even if a client sent the request
};

// A row to write in the same transaction. Its seq becomes that of events[event_index].
struct Attachment {
  std::size_t event_index = 0;
  Row row;
};

// Shared by requests whose order counts: those of one connection to one run. The append thread sets it when it returns
// one of them for retry. From then on it returns the others too, until the owner has all of them and clears it.
struct Requeued {
  std::atomic<bool> any = false;
};

// Patches of a request, and the state that they were checked against. Other patches may be numbered in the meantime, so
// the append thread decides whether they apply.
struct CheckedPatches {
  struct Patch {
    std::string body;     // as received, before a long patch was spilled
    std::string spilled;  // the text of a patch that the body only refers to
  };
  std::int64_t run_seq = -1;  // the state's last event
  json::Tree after;           // the working state after the patches
  std::vector<Patch> patches;
};

// Events and rows that are committed together or not at all.
struct AppendRequest {
  std::string actor;
  std::vector<Addressed> events;
  std::vector<Attachment> rows;
  std::optional<std::int64_t> expected_run_seq;  // expected run_seq of events[0]
  bool ids_checked = false;                      // Postgres was queried, and the client's ids are new
  // Number of events of the run when the caller queried the bytes that its steps have stored. If the same bytes were
  // added to the step since then, the request is returned for retry.
  std::optional<std::int64_t> contents_asked_at;
  // Names (of documents, for example) that the events concern, and the seq up to which the queried tables covered them.
  // If an event concerning one of the names was appended since then, the request is returned for retry.
  std::vector<std::string> names;
  std::int64_t names_known_upto = 0;
  std::shared_ptr<Run> names_run{};  // the run in which the names are compared; nullptr: the run of events[0]
  // Names on which the events rely without concerning them. An event concerning one of these also returns the request
  // for retry, but two requests that rely on the same name do not conflict.
  std::vector<std::string> names_relied_on;
  // Result of ErasureGate::pass before the referenced data was read. If something was erased since then, the request is
  // returned for retry.
  std::optional<std::int64_t> erasures_seen;
  // The patches among the events; all are of the run of events[0]. If one does not apply to the state that the events
  // numbered before lead to, the request is refused.
  std::optional<CheckedPatches> patches{};
  std::shared_ptr<Requeued> order;  // nullptr: the order does not matter
  Monotonic queued{};               // set by the appender: time of submission, until the request is taken
  bool patient = false;  // the sender does not wait, so the request may be delayed by a few milliseconds to join others
  bool must_be_stored = false;  // an event of the daemon, which is retried until Postgres stores it

  // Called once on the append thread after the commit or the refusal. It must not block, and need not wake the loop,
  // because Appender::on_answered follows. Receives one receipt for each event, in order; an event omitted by `if_open`
  // has seq -1.
  std::function<void(Result<std::vector<events::Receipt>>)> done;
};

// Returns the size of the bodies and patches.
std::size_t bytes_of(const AppendRequest& request);

// Returns the error with which the append thread returns a request for retry, with nothing decided. The conflicts are:
// maybe_duplicate: an id may be in the log. The caller queries Postgres (read_event_by_id) and answers with the first
// receipt, or submits the request again with ids_checked.
// maybe_stored: the same bytes were added to the step after the query (contents_asked_at). The caller queries again.
// moved_on: an event concerning one of its names was appended after names_known_upto, something was erased after
// erasures_seen, or a patch that its patches were not checked against was committed. The caller prepares the request
// again.
// out_of_turn: it follows a returned request. The caller submits it again after that one.
// AppendConflict::other_run_seq is different: expected_run_seq does not match the run, and the request is refused.
Error requeue(AppendConflict why);
bool is_requeued(const Error& error);

struct AppenderOptions {
  std::string uri;
  std::int16_t log_no = 1;
  std::string folder{};  // the data folder, by which another daemon names this one if it finds the log held
  std::chrono::milliseconds commit_deadline{10'000};  // a server that does not answer within this time is unavailable
  Standbys standbys{};                                // must confirm every commit; without them, nothing is appended
  std::vector<std::int64_t> roots_wanted;             // sizes of the log, for root_at_start
  WrittenEnd* written = nullptr;                      // notified of commits
};

// State of the log.
struct LogStatus {
  Uuid log_id;
  std::int64_t size = 0;       // events that Postgres confirmed as committed
  std::int64_t in_flight = 0;  // upper bound of events that are sent but not confirmed; readers may see them
  Hash root{};                 // root of the tree of that size
  std::int64_t epoch = 0;
  std::string away;     // reason why appends are suspended; empty: they are not
  bool silent = false;  // the reason is that Postgres does not answer; otherwise it answers, but commits could be lost
  Time since;           // time of the last change of `away`; zero: unchanged since the start
  std::string refused;  // reason why nothing is appended until a restart (fail-stop); empty: none
  std::int64_t queued_events = 0;
  std::int64_t queued_bytes = 0;
};

class Appender;

// Submits a request and waits for the commit. Call it from a thread that may block, never from the loop or the append
// thread. It sets `done` itself. Errors: those of the append; unavailable with outcome "unknown" if no answer arrived
// in time.
Result<std::vector<events::Receipt>> append_and_wait(Appender& appender, AppendRequest request,
                                                     std::chrono::milliseconds at_most);

class Appender {
 public:
  // Takes over the log: acquires the advisory lock, raises the epoch, reads the head and computes the tree from the
  // last checkpoint. Errors: conflict if another daemon holds the log; corrupt if the end of the log does not match its
  // hashes; unavailable.
  static Result<std::unique_ptr<Appender>> open(AppenderOptions options, Clock& clock, Tail& tail, RunDirectory& runs);
  ~Appender();  // stops as `stop` does

  // May be called from any thread. Errors (`done` is not called then): over_budget if the queue is full; unavailable
  // after `stop` or while Postgres does not answer.
  Status submit(AppendRequest request);

  LogStatus status() const;

  // Every append that refers to other data must pass this gate.
  ErasureGate& erasure_gate();

  // Returns the root of the first `size` events as computed at the takeover, for one of the sizes in roots_wanted;
  // nullopt: the log was smaller.
  std::optional<Hash> root_at_start(std::int64_t size) const;

  // Refuses every later append with this error, because the log does not match a signed checkpoint. May be called from
  // any thread.
  void refuse(Error why);

  // Accepts nothing more and stops waiting for a Postgres that does not answer. May be called from any thread.
  void close();
  // Closes the appender, drains the queue, stores a checkpoint of the tree and ends the thread.
  void stop();

  // Called on the append thread after it has answered all requests that a commit or a refusal decided, so that the
  // waiting side is woken only once.
  std::function<void()> on_answered;
  // Called on the append thread when the daemon must exit because another writer fenced it. The error names the reason.
  std::function<void(Error)> on_fatal;

 private:
  class Impl;
  explicit Appender(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muniment::store
