// The append connection: uses libpq without libpqxx, so that a statement can be sent, polled and abandoned at a
// deadline. It takes over a log, commits a batch behind the epoch fence and reads the last row. The appender decides
// how to react to the results.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/config/standbys.hpp"
#include "base/metrics.hpp"
#include "base/result.hpp"
#include "events/merkle.hpp"
#include "store/append/binary_rows.hpp"
#include "store/append/rows.hpp"
#include "store/append/tail.hpp"

struct pg_conn;
struct pg_result;

namespace muniment::store {

// State of a log in the database.
struct TakenOver {
  Uuid log_id;
  std::int64_t epoch = 0;
};

struct LastRow {
  std::int64_t seq = -1;  // -1: the log is empty
  Hash run_hash{};
  bool operator==(const LastRow&) const = default;
};

enum class CommitOutcome {
  committed,
  fenced,        // another process raised the epoch: nothing was inserted
  refused,       // rolled back because of a row's data (SQLSTATE class 22 or 23)
  rows_lost,     // rolled back: Postgres inserted fewer rows than were sent (a foreign trigger, for example)
  no_partition,  // rolled back: the partition of the rows does not exist
  rolled_back,   // rolled back for another reason: nothing was inserted, a retry may succeed
  unknown,       // the connection broke or timed out, or the standbys did not confirm: it may be committed
};

struct CommitResult {
  CommitOutcome outcome = CommitOutcome::unknown;
  std::string sqlstate{};
  std::string message{};
  std::string constraint{};  // name of the constraint that a refused row violates
};

// The rows to write, in order. `rows` refer to events by their seq, which must be set.
struct RowBatch {
  std::span<const EventPtr> events;
  std::span<const Row> rows;
};

// Steps of the caller while Postgres processes a batch.
struct CommitSteps {
  std::function<void()> before_commit;  // the rows are sent but the COMMIT is not, so nothing can be committed yet
  std::function<void()> meanwhile;      // everything is sent, and the answer is pending
};

class AppendConnection {
 public:
  // `folder` is the data folder; it is part of the session's application_name.
  AppendConnection(std::string uri, std::int16_t log_no, Uuid writer, const std::string& folder = "",
                   Standbys standbys = {});
  ~AppendConnection();

  // Connects and prepares the statements. Errors: unavailable.
  Status connect(std::chrono::milliseconds at_most);
  bool connected() const { return connection_ != nullptr; }
  void disconnect();

  // Takes a session advisory lock for the lifetime of the connection, so that a second daemon stops early. Returns
  // false if another session holds it.
  Result<bool> try_lock();

  // Returns host and data folder of the daemon that holds the lock; empty if they are unknown. The session loses its
  // role.
  Result<std::string> lock_holder();

  // Raises the epoch, which waits for the previous writer's statement to end and fences that writer. `held` is the
  // epoch that this process last held; nullopt at start: any epoch may be taken over. Returns conflict if another
  // process has raised the epoch since then. Returns unavailable if the standbys did not confirm the raise, because
  // they may also lack earlier commits.
  Result<TakenOver> take_over(std::optional<std::int64_t> held);

  // Returns the reason why commits acknowledged on this connection could be lost (durability.hpp); empty: they cannot
  // be.
  Result<std::string> unsafe_setting(std::chrono::milliseconds at_most);

  // Waits until as many of the named standbys as required have flushed everything that is committed now. Returns at
  // once if none are named. Errors: unavailable.
  Status await_standbys(std::chrono::milliseconds at_most);

  // Creates the partition of `seq` unless it exists.
  Status make_partition(std::int64_t seq);

  Result<LastRow> last_row();
  // Returns the event at `seq`; the value of an empty log if there is none.
  Result<LastRow> row_at(std::int64_t seq);
  Result<std::int64_t> next_run_no();
  // Returns the last stored tree of at most `size_max` events; the empty tree if none was stored. Errors: corrupt.
  Result<events::MerkleEdge> last_checkpoint(std::int64_t size_max = INT64_MAX);

  // Commits `batch` in one transaction. Each step runs once unless an earlier one fails.
  CommitResult commit(const RowBatch& batch, std::int64_t epoch, std::chrono::milliseconds at_most,
                      const CommitSteps& steps);

  // Stores the tree at its current size, behind the same fence.
  CommitResult store_checkpoint(const events::MerkleEdge& edge, Time now, std::int64_t epoch,
                                std::chrono::milliseconds at_most);

 private:
  struct ResultDeleter {
    void operator()(pg_result* result) const;
  };
  using PgResult = std::unique_ptr<pg_result, ResultDeleter>;

  // Largest number of events and of rows that commit_pipeline writes; measured (docs/benchmarks.md).
  static constexpr std::size_t pipelined_events_max = 64;
  static constexpr std::size_t pipelined_rows_max = 8;

  // commit_pipeline and commit_copy leave pending results to `commit`, which drains them.
  CommitResult commit_pipeline(const RowBatch& batch, std::int64_t epoch, const CommitSteps& steps);
  bool send_rows(const RowBatch& batch, std::int64_t epoch);
  CommitResult commit_copy(const RowBatch& batch, std::int64_t epoch, const CommitSteps& steps);
  std::optional<CommitResult> copy_table(const Table& table, std::string_view rows, std::size_t count,
                                         const std::function<void()>& sent);

  // Awaits the result of the next statement. Returns nullopt if it has the expected status.
  std::optional<CommitResult> await(int status);
  std::optional<CommitResult> await_fence();
  std::optional<CommitResult> await_rows(const Table& table, std::size_t count);
  CommitResult await_commit();
  CommitResult failure(const pg_result* result) const;
  CommitResult silence() const;
  static CommitResult rows_lost(const Table& table, std::size_t count);
  Error unavailable(std::string_view doing) const;
  void note_warning(const pg_result* notice);

  Status prepare(std::chrono::milliseconds at_most);
  bool flush_all();
  bool wait_for_input();
  PgResult next_result();  // nullptr: no more results, or the connection is lost
  void drain();
  // Runs a query. `name` is the key under which its duration is recorded.
  Result<PgResult> query(std::string_view name, const std::string& sql, std::chrono::milliseconds at_most);
  Result<LastRow> one_row(std::string_view name, const std::string& which);
  bool healthy() const;

  const std::string uri_;
  const std::int16_t log_no_;
  const Uuid writer_;
  const std::string name_;  // application_name
  const Standbys standbys_;
  pg_conn* connection_ = nullptr;
  Monotonic deadline_{};
  bool timed_out_ = false;
  std::string warning_;  // last warning of Postgres since the last statement began
  metrics::Histogram& pipeline_seconds_ = metrics::process().statements.of("append_pipeline");
  metrics::Histogram& copy_seconds_ = metrics::process().statements.of("append_copy");
  std::string buffer_;  // encoded rows; kept for its capacity
};

}  // namespace muniment::store
