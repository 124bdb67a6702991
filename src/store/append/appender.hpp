// The append thread: the one writer of a log. It owns one connection, takes everything that is
// queued (group commit; only what nobody waits for waits a little), numbers it from memory, hashes it, commits it in
// one transaction behind the epoch fence, and only then answers. docs/architecture.md, One append.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
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
  bool if_open = false;        // left out when the run is not open (child.halted in a parent)
  bool unless_halted = false;  // left out when the run is: somebody else has stopped it meanwhile
  bool with_previous = false;  // left out when the one before it in the request is (child.halted behind its run.halted)
  bool by_daemon = false;      // munimentd says it, whoever the request is from
};

// A row to write in the same transaction; its seq becomes that of events[event_index].
struct Attachment {
  std::size_t event_index = 0;
  Row row;
};

// Shared by requests whose order of sending counts (one connection's, to one run). Set by the append thread when it
// gives one of them back; from then on it gives back the others that it holds, until its owner, having all of them,
// clears it.
struct GivenBack {
  std::atomic<bool> any = false;
};

// All of it in one commit, or none of it.
struct AppendRequest {
  std::string actor;
  std::vector<Addressed> events;
  std::vector<Attachment> rows;
  std::optional<std::int64_t> expected_run_seq;  // of events[0]
  bool ids_checked = false;                      // Postgres was asked: the client's ids are new
  // What a step holds of the bytes of `rows`' artifacts was asked when the run had this many events. Where the same
  // bytes came to the step since, the request is given back.
  std::optional<std::int64_t> contents_asked_at;
  // The names (of documents, say) that its events are about, and the seq up to which what is known of them was in the
  // tables that it was made from. Where an event about one of them came since, the request is given back.
  std::vector<std::string> names;
  std::int64_t names_known_upto = 0;
  // The names that its events rely on without being about them: an event about one of these gives the request back,
  // too, but two requests that rely on the same name do not disturb each other.
  std::vector<std::string> names_relied_on;
  // What ErasureGate::pass said before what it refers to was read. Where something was erased since, the request is
  // given back.
  std::optional<std::int64_t> erasures_seen;
  std::shared_ptr<GivenBack> order;  // nullptr: it stands in none
  Monotonic queued{};                // the appender's: when it was submitted, until it is taken
  bool patient = false;              // nobody waits for it: it may wait for others, a few milliseconds
  bool owed = false;                 // the appender's own: refused by Postgres, it is tried again until it is in

  // Called once on the append thread, after the commit or the refusal; must not block, and need not
  // wake anybody: Appender::on_answered follows. One receipt an event, in order (an event left out by
  // `if_open` has seq -1).
  std::function<void(Result<std::vector<events::Receipt>>)> done;
};

// A conflict with which the append thread returns a request for another try, with nothing decided:
//   maybe_duplicate  the fingerprints know one of its ids: the caller asks Postgres (read_event_by_id) and either
//   answers with
//                    the first receipt, or submits the request again with ids_checked
//   maybe_stored     bytes came to their step since the caller asked (contents_asked_at): it asks again
//   moved_on         an event about one of its names came since it was made (names_known_upto), or something was erased
//                    (erasures_seen): it is made again
//   out_of_turn      it is behind a returned one (GivenBack): it is submitted again behind that one
// AppendConflict::other_run_seq is no such conflict: expected_run_seq is not the run's next run_seq, and the request is
// refused.
Error give_back(AppendConflict why);
bool is_given_back(const Error& error);

struct AppenderOptions {
  std::string uri;
  std::int16_t log_no = 1;
  std::chrono::milliseconds commit_deadline{10'000};  // a server that is silent for longer is unavailable
  std::int64_t required_standbys = 0;                 // without so many that confirm every commit, nothing is appended
  std::vector<std::int64_t> roots_wanted;             // sizes of the log, for root_at_start
  WrittenEnd* written = nullptr;                      // is told of what is committed
};

// What is known of the log itself.
struct LogStatus {
  Uuid log_id;
  std::int64_t size = 0;       // events of which Postgres has said that they are committed
  std::int64_t in_flight = 0;  // at most so many more are sent to it, and may be read already
  Hash root{};                 // of the tree of that size
  std::int64_t epoch = 0;
  std::string away;     // why nothing is appended for the time being; empty: it is
  bool silent = false;  // because Postgres does not answer; otherwise it does, and what it takes could be lost
  Time since;           // since when it is so, or is not so any more; zero: since the start
  std::string refused;  // why nothing is appended any more; empty: it is
  std::int64_t queued_events = 0;
  std::int64_t queued_bytes = 0;
};

class Appender;

// Submits and waits for the commit: for a thread that may block, never the loop or the append thread. Its `done` is
// ours. Errors: those of the append; unavailable, its outcome "unknown", when it was not answered in time.
Result<std::vector<events::Receipt>> append_and_wait(Appender& appender, AppendRequest request,
                                                     std::chrono::milliseconds at_most);

class Appender {
 public:
  // Takes the log over: advisory lock, epoch raised, head read, tree brought up to date from the
  // last checkpoint. Errors: conflict when another daemon holds the log; corrupt when the log's end
  // does not fit its own hashes; unavailable.
  static Result<std::unique_ptr<Appender>> open(AppenderOptions options, Clock& clock, Tail& tail, RunDirectory& runs);
  ~Appender();  // stops as by `stop`

  // From any thread. Errors (the request's `done` is then not called): over_budget when the queue
  // is full, unavailable after `stop` or while Postgres does not answer.
  Status submit(AppendRequest request);

  LogStatus status() const;

  // Passed by whoever records something on what it refers to.
  ErasureGate& erasure_gate();

  // The root of the first `size` events, one of the sizes that were wanted, as the events gave it when the log was
  // taken over. nullopt: the log was smaller.
  std::optional<Hash> root_at_start(std::int64_t size) const;

  // From now on every append gets this error: the log is not what was signed. From any thread.
  void refuse(Error why);

  // From any thread: takes nothing more, and waits no longer for a Postgres that does not answer.
  void close();
  // Closes it, drains the queue, stores a checkpoint of the tree and ends the thread.
  void stop();

  // Called on the append thread when it has answered what a commit or a refusal decided, all of it:
  // one wake-up of whoever waits for answers.
  std::function<void()> on_answered;
  // Called on the append thread when the daemon must not go on: fenced by another writer. The text names it.
  std::function<void(Error)> on_fatal;

 private:
  class Impl;
  explicit Appender(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muniment::store
