// Implements AppendConnection for large batches: one message with a COPY for each table, and the COMMIT after all
// counts were read. COPY costs the server less per row than INSERT, but each COPY needs a round trip and is planned
// anew; append_pipeline.cpp writes small batches.
#include <libpq-fe.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/process/failpoint.hpp"
#include "store/append/append_connection.hpp"
#include "store/append/binary_rows.hpp"

namespace muniment::store {
namespace {

std::string copy_statement(const Table& table) {
  return "COPY " + std::string(table.name) + " (" + std::string(table.columns) + ") FROM STDIN (FORMAT binary); ";
}

// Splits the rows into sequences of one table, each for one COPY. Their order is kept because links refer to earlier
// rows.
std::vector<std::span<const Row>> runs_of_one_table(std::span<const Row> rows) {
  std::vector<std::span<const Row>> runs;
  while (!rows.empty()) {
    const auto end = std::ranges::find_if(rows, [&](const Row& row) { return row.index() != rows.front().index(); });
    const auto size = static_cast<std::size_t>(end - rows.begin());
    runs.push_back(rows.first(size));
    rows = rows.subspan(size);
  }
  return runs;
}

}  // namespace

// A failed fence or a refused row ends the message with an error. Postgres then skips the following statements.
CommitResult AppendConnection::commit_copy(const RowBatch& batch, std::int64_t epoch, const CommitSteps& steps) {
  const std::vector<std::span<const Row>> runs = runs_of_one_table(batch.rows);
  std::string sql = "BEGIN; EXECUTE fence(" + std::to_string(log_no_) + ", " + std::to_string(epoch) + "); " +
                    copy_statement(event_table);
  for (const auto& run : runs) sql += copy_statement(table_of(run.front()));
  if (!PQsendQuery(connection_, sql.c_str())) return silence();

  const auto stream_of = [this](auto rows) {
    buffer_.clear();
    append_copy(log_no_, rows, buffer_);
    return std::string_view(buffer_);
  };
  // Runs while the server processes the statements up to its COPY.
  const std::string_view events = stream_of(batch.events);
  std::optional<CommitResult> failed = await(PGRES_COMMAND_OK);  // BEGIN
  if (!failed) failed = await_fence();
  if (!failed) failed = copy_table(event_table, events, batch.events.size(), steps.before_commit);
  for (std::size_t i = 0; !failed && i < runs.size(); ++i)
    failed = copy_table(table_of(runs[i].front()), stream_of(runs[i]), runs[i].size(), [] {});
  if (failed) return *failed;
  drain();
  if (!PQsendQuery(connection_, "COMMIT") || !flush_all()) return silence();
  FAILPOINT("append.sent");
  steps.meanwhile();
  return await_commit();
}

// Sends the rows of one table when the server requests them, and awaits confirmation of all of them.
std::optional<CommitResult> AppendConnection::copy_table(const Table& table, std::string_view rows, std::size_t count,
                                                         const std::function<void()>& sent) {
  if (auto failed = await(PGRES_COPY_IN)) return failed;
  while (!rows.empty()) {
    const std::string_view part = rows.substr(0, std::size_t{1} << 18);
    const int taken = PQputCopyData(connection_, part.data(), static_cast<int>(part.size()));
    if (taken < 0) return silence();
    if (taken == 0) {
      if (!flush_all()) return silence();
      continue;
    }
    rows.remove_prefix(part.size());
  }
  while (true) {
    const int ended = PQputCopyEnd(connection_, nullptr);
    if (ended > 0) break;
    if (ended < 0 || !flush_all()) return silence();
  }
  sent();
  const PgResult result = next_result();
  if (!result) return silence();
  if (PQresultStatus(result.get()) != PGRES_COMMAND_OK) return failure(result.get());
  if (PQcmdTuples(result.get()) != std::to_string(count)) return rows_lost(table, count);
  return std::nullopt;
}

}  // namespace muniment::store
