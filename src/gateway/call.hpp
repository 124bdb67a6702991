// What a method gets and what it answers. A method is one straight-line function: it may block on
// its worker's reader and on files, but never waits for a commit. Where it writes, it answers with
// the append to be made and with what to say once that is committed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "events/event.hpp"
#include "store/appender.hpp"
#include "store/reader.hpp"

namespace muniment::gateway {

struct Services;  // services.hpp

// Who sent a request: the peer's uid, as the kernel says.
struct Caller {
  std::uint32_t uid = 0;
  std::string actor;              // "uid:1000"
  bool admin = false;             // root, or the uid that the daemon runs as: sees every run
  std::uint64_t connection = 0;
};

struct Reply {
  std::string result;             // the JSON text of `result`
  std::string raw;                // bytes that follow the line (artifact.get, encoding raw)
};

// An append to be made; `finish` turns its receipts into the reply. It runs on the loop thread and
// must not block, unless `finish_on_worker`.
struct PendingAppend {
  store::AppendRequest request;
  std::function<Result<Reply>(Services&, const std::vector<events::Receipt>&)> finish;
  // Given the refusal of an append (never of one whose outcome is unknown): clean up, and answer
  // otherwise if there is a better answer. May be empty. Runs where `finish` does.
  std::function<Result<Reply>(Services&, Error)> refused;
  bool finish_on_worker = false;
};

// The request cannot be served without blocking: send it to a worker.
struct NeedsWorker {};

using Answer = std::variant<Reply, PendingAppend, NeedsWorker>;

struct Call {
  const Caller& caller;
  json::Value params;             // validated against schema/rpc/<method>.json
  Services& services;
  store::Reader* reader;          // nullptr on the loop thread: answer NeedsWorker instead of reading
  Deadline deadline;
  std::string_view idempotency_key;  // _meta.idempotency_key, or empty
  // The appender answered maybe_duplicate: on this second time, on a worker, the method asks
  // Postgres for the client's ids, and either answers with the first receipts or sets ids_checked.
  bool check_ids = false;
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
  on_loop,         // never blocks
  loop_first,      // tried on the loop thread; goes to a worker when it answers NeedsWorker
  on_worker,
};

struct MethodInfo {
  std::string_view name;
  Method function;
  Runs runs = Runs::on_worker;
  bool writes = false;            // refused as a notification
  bool always_answers = false;    // also while Postgres does not
  OpenBody open_body = nullptr;   // takes `body_bytes`
};

}  // namespace muniment::gateway
