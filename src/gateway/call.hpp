// The arguments and answers of a method. A method is one straight-line function: it may block on its worker's reader
// and on files, but never waits for a commit. To write, it returns the append to make and the function that builds the
// reply once that is committed.
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
#include "gateway/request/write_state.hpp"
#include "store/append/appender.hpp"
#include "store/read/reader.hpp"

namespace muniment::gateway {

struct Services;  // services.hpp
class Reading;    // reading.hpp
struct Exchange;  // exchange.hpp

// The replies of a connection that its client has not read.
struct Unread {
  std::atomic<std::size_t> bytes = 0;  // any thread; includes the replies that a worker has just made
  // Loop thread only: requests that wait until the client has read enough.
  std::vector<std::shared_ptr<Exchange>> paused;
};

// The sender of a request: the peer's uid as reported by the kernel.
struct Caller {
  std::uint32_t uid = 0;
  std::string actor;   // "uid:1000"
  bool admin = false;  // root, or the uid that the daemon runs as: sees every run
  std::uint64_t connection = 0;
  std::shared_ptr<Unread> unread{};  // unread replies of the connection; nullptr: replies are not counted
  // Folders whose files the daemon may read for this client of MCP; nullptr: not a client of MCP.
  std::shared_ptr<const std::vector<std::string>> folders{};
  // Pieces that the connection has read; nullptr: each piece of an artifact counts as a separate read.
  std::shared_ptr<Reading> reading{};
  std::string folder{};       // working folder of a client of MCP, as it states; empty: unknown
  bool observed = false;      // the daemon's executor acts for the user: the commands that it records are observed
  std::uint32_t process = 0;  // that connected to the Unix socket; 0: a client of HTTP
};

struct Reply {
  std::string result;  // the JSON text of `result`
  std::string raw;     // bytes that follow the line (artifact.get, encoding raw)
};

struct Call;
struct PendingAppend;

// The method would block: the dispatcher runs it again on a worker.
struct NeedsWorker {
  bool after_earlier = false;  // run it only after the earlier requests of this connection to the run are answered
};

using Answer = std::variant<Reply, PendingAppend, NeedsWorker>;

// An append to make; `finish` turns its receipts into the reply. `finish` runs on the loop thread and must not block,
// unless `finish_on_worker` is set. An error of `finish` other than run_halted carries `outcome: "unknown"`.
struct PendingAppend {
  store::AppendRequest request;
  std::size_t leading_events = 0;  // number of events before the requested ones
  std::function<Result<Reply>(Services&, const std::vector<events::Receipt>&)> finish;
  // Receives the error of a refused append (never one of unknown outcome), cleans up, and may return a better answer.
  // May be empty. Runs where `finish` runs.
  std::function<Result<Reply>(Services&, Error)> refused;
  // Makes the answer, on a worker, if the append thread returned the append for retry (store::is_requeued). If it is
  // empty, `refused` cleans up and the method runs again.
  std::function<Result<Answer>(Call&)> again;
  bool finish_on_worker = false;
  // Submitted even if the request was already answered, because the method began to write and the reply reported it.
  bool even_if_answered = false;
};

struct Call {
  const Caller& caller;
  json::Value params;  // validated against schema/rpc/<method>.json
  Services& services;
  store::Reader* reader;  // nullptr on the loop thread: return NeedsWorker instead of reading
  Deadline deadline;
  std::string_view idempotency_key;  // _meta.idempotency_key, or empty
  // The appender answered maybe_duplicate. On this second run, on a worker, the method looks up the client's ids in
  // Postgres and either answers with the first receipts or sets ids_checked.
  bool check_ids = false;
  WriteState* write_state = nullptr;  // state of the request; nullptr: it is never answered before its work is done
  bool without_database = false;      // Postgres did not answer in time, so answer from memory
  std::optional<std::int64_t>
      erasures_seen{};        // set by begin_referring; the append is returned for retry after a later erasure
  std::int16_t read_log = 0;  // number of the earlier log that was read, for the reply's log_no; 0: none

  // Call this before the method itself makes a permanent change, which is not undone if its append is refused. From
  // then on, an early answer of the loop carries `outcome: "unknown"`, and so does an error that is not the caller's
  // mistake. Errors: deadline_exceeded if the request was already answered.
  Status begin_writing() const {
    if (write_state == nullptr || write_state->begin_writing_itself()) return success();
    return Error(Errc::deadline_exceeded, "the request was answered before anything was written.");
  }
  // Marks the change as made: every later error carries `outcome: "unknown"`.
  void has_written() const {
    if (write_state != nullptr) write_state->has_written();
  }
};

// Receives the raw bytes that follow a request line, in chunks, on a worker.
class BodySink {
 public:
  virtual ~BodySink() = default;  // an incomplete body leaves nothing behind, except for a resumable upload
  virtual Status write(std::string_view chunk) = 0;
  virtual Result<Answer> finish(Call& call) = 0;
  // Returns true if the chunks that arrived before the client disconnected must still be written.
  virtual bool keeps_pieces() const { return false; }
};

using Method = Result<Answer> (*)(Call& call);
using OpenBody = Result<std::unique_ptr<BodySink>> (*)(Call& call, std::int64_t body_bytes);

// Threads on which a method may run.
enum class Runs : std::uint8_t {
  on_loop,     // never blocks
  loop_first,  // runs on the loop thread first; moves to a worker if it returns NeedsWorker
  on_worker,
};

// The order between a request and the requests of the same connection to the same run (send_order.hpp).
enum class Order : std::uint8_t {
  none,     // writes nothing, or only the record of a use
  reading,  // with a run: begins after the earlier requests are answered, so that the read of a piece finds the earlier
            // pieces
  in_turn,  // prepared in parallel, numbered in the order of sending
  after_earlier,  // like in_turn, but begins after the earlier requests are answered, because it reads their effects
  before_later,   // like in_turn, but the later requests begin after its answer, because it changes what the run admits
};

struct MethodInfo {
  std::string_view name;
  Method function;
  Runs runs = Runs::on_worker;
  bool writes = false;          // refused as a notification
  bool always_answers = false;  // also answers while Postgres is unreachable
  Order order = Order::none;
  OpenBody open_body = nullptr;  // takes `body_bytes`
};

}  // namespace muniment::gateway
