// The append connection: libpq without libpqxx, so that a statement can be sent, polled and given
// up at a deadline. It knows how to take a log over, how to commit one batch behind the epoch
// fence, and what the last row is; what that means is the appender's business.
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
#include "base/metrics.hpp"
#include "base/result.hpp"
#include "events/merkle.hpp"
#include "store/append/binary_rows.hpp"
#include "store/append/rows.hpp"
#include "store/append/tail.hpp"

struct pg_conn;
struct pg_result;

namespace muniment::store {

// Where a log stands in the database.
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
  fenced,        // the epoch is not ours: nothing was inserted
  refused,       // rolled back for its data (SQLSTATE class 22 or 23): one of the rows is at fault
  rows_lost,     // rolled back: Postgres took fewer rows than it was sent (a trigger of somebody's, say)
  no_partition,  // rolled back: the partition that the rows belong to is not there
  rolled_back,   // rolled back for another reason: nothing was inserted, trying again may help
  unknown,       // the connection broke, was silent for too long, or the standbys did not confirm: it may be in
};

struct CommitResult {
  CommitOutcome outcome = CommitOutcome::unknown;
  std::string sqlstate{};
  std::string message{};
  std::string constraint{};  // which a refused row does not keep
};

// Rows ready to be written, in order. `rows` refer to events by their seq, which is filled in.
struct RowBatch {
  std::span<const EventPtr> events;
  std::span<const Row> rows;
};

// What is done while Postgres is busy with a batch.
struct CommitSteps {
  std::function<void()> before_commit;  // the rows are sent, and the COMMIT is not: nothing of them can be in yet
  std::function<void()> meanwhile;      // everything is sent, and only the answer is missing
};

class AppendConnection {
 public:
  AppendConnection(std::string uri, std::int16_t log_no, Uuid writer);
  ~AppendConnection();

  // Connects and prepares. Errors: unavailable.
  Status connect(std::chrono::milliseconds at_most);
  bool connected() const { return connection_ != nullptr; }
  void disconnect();

  // The polite refusal: a session advisory lock for as long as the connection lives. False: held.
  Result<bool> try_lock();

  // Raises the epoch, which waits for a statement of the writer before to end and fences it.
  // `held` is the epoch that this process last held: nullopt at start (any may be taken over);
  // otherwise conflict when somebody else has raised it since. A raise that the standbys did not confirm
  // is unavailable: what was committed before it need not be with them either.
  Result<TakenOver> take_over(std::optional<std::int64_t> held);

  // Why what is acknowledged on this connection could be lost (durability.hpp); empty: it could not.
  Result<std::string> unsafe_setting(std::int64_t required_standbys, std::chrono::milliseconds at_most);

  // Makes the partition that `seq` falls into, unless it is there.
  Status make_partition(std::int64_t seq);

  Result<LastRow> last_row();
  // The event at `seq`; that of an empty log where there is none.
  Result<LastRow> row_at(std::int64_t seq);
  Result<std::int64_t> next_run_no();
  // The tree as last stored, of at most so many events; the empty one where it never was. Errors: corrupt.
  Result<events::MerkleEdge> last_checkpoint(std::int64_t size_max = INT64_MAX);

  // Commits `batch` in one transaction; each step is taken once, unless something fails before.
  CommitResult commit(const RowBatch& batch, std::int64_t epoch, std::chrono::milliseconds at_most,
                      const CommitSteps& steps);

  // Stores the tree at its present size, behind the same fence.
  CommitResult store_checkpoint(const events::MerkleEdge& edge, Time now, std::int64_t epoch,
                                std::chrono::milliseconds at_most);

 private:
  struct ResultDeleter {
    void operator()(pg_result* result) const;
  };
  using PgResult = std::unique_ptr<pg_result, ResultDeleter>;

  // Up to so many, of either, a batch is written by commit_pipeline; measured (docs/benchmarks.md).
  static constexpr std::size_t pipelined_events_max = 64;
  static constexpr std::size_t pipelined_rows_max = 8;

  // Both ways of writing leave it to `commit` to drain what is still to be answered.
  CommitResult commit_pipeline(const RowBatch& batch, std::int64_t epoch, const CommitSteps& steps);
  bool send_rows(const RowBatch& batch, std::int64_t epoch);
  CommitResult commit_copy(const RowBatch& batch, std::int64_t epoch, const CommitSteps& steps);
  std::optional<CommitResult> copy_table(const Table& table, std::string_view rows, std::size_t count,
                                         const std::function<void()>& sent);

  // Await the next statement's answer; nullopt: it is as it should be.
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
  PgResult next_result();  // nullptr: no more results, or the connection is gone
  void drain();
  // `name`: under which its time is kept.
  Result<PgResult> query(std::string_view name, const std::string& sql, std::chrono::milliseconds at_most);
  Result<LastRow> one_row(std::string_view name, const std::string& which);
  bool healthy() const;

  const std::string uri_;
  const std::int16_t log_no_;
  const Uuid writer_;
  pg_conn* connection_ = nullptr;
  Monotonic deadline_{};
  bool timed_out_ = false;
  std::string warning_;  // that Postgres gave since the last statement was begun
  metrics::Histogram& pipeline_seconds_ = metrics::process().statements.of("append_pipeline");
  metrics::Histogram& copy_seconds_ = metrics::process().statements.of("append_copy");
  std::string buffer_;  // rows being written, kept for its capacity
};

}  // namespace muniment::store
