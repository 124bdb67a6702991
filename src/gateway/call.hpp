// What a method gets and what it answers. A method is one straight-line function: it may block on
// its worker's reader and on files, but never waits for a commit. Where it writes, it answers with
// the append to be made and with what to say once that is committed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "base/json/json.hpp"
#include "base/result.hpp"
#include "events/event.hpp"
#include "gateway/request/standing.hpp"
#include "store/append/appender.hpp"
#include "store/read/reader.hpp"

namespace muniment::gateway {

struct Services;  // services.hpp
class Reading;    // reading.hpp
struct Exchange;  // exchange.hpp

// Replies of a connection that its client has not read.
struct Unread {
  std::atomic<std::size_t> bytes = 0;             // from any thread; those that a worker has just made are in it
  std::vector<std::shared_ptr<Exchange>> paused;  // the loop's: requests that wait until enough is read
};

// Who sent a request: the peer's uid, as the kernel says.
struct Caller {
  std::uint32_t uid = 0;
  std::string actor;   // "uid:1000"
  bool admin = false;  // root, or the uid that the daemon runs as: sees every run
  std::uint64_t connection = 0;
  std::shared_ptr<Unread> unread{};    // of the connection; nullptr: replies are not counted
  std::shared_ptr<Reading> reading{};  // of the connection; nullptr: each piece of an artifact is read by itself
};

struct Reply {
  std::string result;  // the JSON text of `result`
  std::string raw;     // bytes that follow the line (artifact.get, encoding raw)
};

struct Call;
struct PendingAppend;

// The request cannot be served without blocking: send it to a worker.
struct NeedsWorker {
  bool settled = false;  // once what its connection sent to this run before is answered
};

using Answer = std::variant<Reply, PendingAppend, NeedsWorker>;

// An append to be made; `finish` turns its receipts into the reply. It runs on the loop thread and
// must not block, unless `finish_on_worker`. An error of `finish` other than run_halted says `outcome: "unknown"`.
struct PendingAppend {
  store::AppendRequest request;
  std::size_t companions = 0;  // of its events, in front: they come with what was asked for
  std::function<Result<Reply>(Services&, const std::vector<events::Receipt>&)> finish;
  // Given the refusal of an append (never of one whose outcome is unknown): clean up, and answer
  // otherwise if there is a better answer. May be empty. Runs where `finish` does.
  std::function<Result<Reply>(Services&, Error)> refused;
  // Given back by the append thread (store::is_given_back): what to answer instead, on a worker. Where it is empty,
  // `refused` cleans up and the method runs again.
  std::function<Result<Answer>(Call&)> again;
  bool finish_on_worker = false;
  // Submitted even when the request was answered: it began to write, and said so.
  bool even_if_answered = false;
};

struct Call {
  const Caller& caller;
  json::Value params;  // validated against schema/rpc/<method>.json
  Services& services;
  store::Reader* reader;  // nullptr on the loop thread: answer NeedsWorker instead of reading
  Deadline deadline;
  std::string_view idempotency_key;  // _meta.idempotency_key, or empty
  // The appender answered maybe_duplicate: on this second time, on a worker, the method asks
  // Postgres for the client's ids, and either answers with the first receipts or sets ids_checked.
  bool check_ids = false;
  Standing* standing = nullptr;   // of the request; nullptr: nobody answers it before its work is done
  bool without_database = false;  // Postgres did not answer soon enough: say what is known without it
  std::optional<std::int64_t>
      erasures_seen{};        // by begin_referring: its append is given back where something was erased since
  std::int16_t read_log = 0;  // the log before the present one that was read; the reply's log_no. 0: none was

  // Before a method itself writes something that stays, and is not undone when its append is refused: from here on the
  // loop answers `outcome: "unknown"` where it answers first, and so does an error that is not the caller's. Errors:
  // deadline_exceeded, when it has answered already.
  Status begin_writing() const {
    if (standing == nullptr || standing->begin_writing_itself()) return success();
    return Error(Errc::deadline_exceeded, "the request was answered before anything was written.");
  }
  // Some of it is: no error says any more that nothing was.
  void has_written() const {
    if (standing != nullptr) standing->has_written();
  }
};

// Takes the raw bytes that follow a request line, chunk by chunk, on a worker.
class BodySink {
 public:
  virtual ~BodySink() = default;  // dropped half-way: nothing stays (but a resumable upload)
  virtual Status write(std::string_view chunk) = 0;
  virtual Result<Answer> finish(Call& call) = 0;
  // What came before its client went is of use to it: it is still written.
  virtual bool keeps_pieces() const { return false; }
};

using Method = Result<Answer> (*)(Call& call);
using OpenBody = Result<std::unique_ptr<BodySink>> (*)(Call& call, std::int64_t body_bytes);

// Where a method may run.
enum class Runs : std::uint8_t {
  on_loop,     // never blocks
  loop_first,  // tried on the loop thread; goes to a worker when it answers NeedsWorker
  on_worker,
};

// How a method's events stand to what its connection sent to the same run before and behind it (send_order.hpp).
enum class Order : std::uint8_t {
  none,      // it writes nothing, or only what the daemon notes of a use
  reading,   // of what names a run: begun when what was sent to it before is answered, so that one piece finds the
             // others
  in_turn,   // numbered in the order of sending, prepared side by side
  settled,   // as in_turn, and begun when what was sent before it is answered: it looks at what is there
  settling,  // as in_turn, and what is sent behind it is begun when it is answered: it changes what a run admits
};

struct MethodInfo {
  std::string_view name;
  Method function;
  Runs runs = Runs::on_worker;
  bool writes = false;          // refused as a notification
  bool always_answers = false;  // also while Postgres does not
  Order order = Order::none;
  OpenBody open_body = nullptr;  // takes `body_bytes`
};

}  // namespace muniment::gateway
