// Implements AppendConnection for small batches: prepared statements in libpq's pipeline mode. The whole transaction is
// sent at once and its results are awaited together, so the server parses and plans nothing and there is one round
// trip. For large batches, COPY costs the server less (append_copy.cpp).
#include <libpq-fe.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/process/failpoint.hpp"
#include "store/append/append_connection.hpp"
#include "store/append/binary_rows.hpp"

namespace muniment::store {
namespace {

// Builds the INSERT of this number of rows into a table, each column a parameter. If a foreign trigger drops a row, the
// statement divides by zero, because the COMMIT is sent before the count can be read.
std::string insert_statement(const Table& table, std::size_t rows) {
  const auto columns = static_cast<std::size_t>(std::ranges::count(table.columns, ',')) + 1;
  std::string sql =
      "WITH put AS (INSERT INTO " + std::string(table.name) + " (" + std::string(table.columns) + ") VALUES ";
  for (std::size_t i = 0; i < rows * columns; ++i) {
    sql += i == 0 ? "(" : i % columns == 0 ? "), (" : ", ";
    sql += "$" + std::to_string(i + 1);
  }
  return sql + ") RETURNING 1) SELECT 1 / (count(*) = " + std::to_string(rows) + ")::int FROM put";
}

// Returns the name of the prepared INSERT. Starting a statement costs the server several times as much as a row.
// Therefore the events of a batch are one statement, prepared for each number of rows.
std::string insert_name(const Table& table, std::size_t rows) {
  return std::string(table.name) + "_" + std::to_string(rows);
}

std::int32_t length_at(const char* field) {
  std::uint32_t length = 0;
  for (int i = 0; i < 4; ++i) length = length << 8 | static_cast<std::uint8_t>(field[i]);
  return static_cast<std::int32_t>(length);
}

// Executes a prepared statement with these fields (binary_rows.hpp) as its parameters.
bool send_fields(pg_conn* connection, const std::string& statement, const std::string& fields) {
  std::vector<const char*> values;
  std::vector<int> lengths;
  for (std::size_t at = 0; at < fields.size();) {
    const std::int32_t length = length_at(fields.data() + at);
    at += sizeof length;
    values.push_back(length < 0 ? nullptr : fields.data() + at);
    lengths.push_back(std::max(length, 0));
    at += static_cast<std::size_t>(lengths.back());
  }
  const std::vector<int> binary(values.size(), 1);
  return PQsendQueryPrepared(connection, statement.c_str(), static_cast<int>(values.size()), values.data(),
                             lengths.data(), binary.data(), 0) == 1;
}

bool send_plain(pg_conn* connection, const char* statement) {
  return PQsendQueryPrepared(connection, statement, 0, nullptr, nullptr, nullptr, 0) == 1;
}

}  // namespace

// Both ways of writing use the same fence: it locks the log's row against a change of epoch until the transaction ends.
// If another process raised the epoch, the fence fails and Postgres skips the following statements.
Status AppendConnection::prepare(std::chrono::milliseconds at_most) {
  deadline_ = std::chrono::steady_clock::now() + at_most;
  timed_out_ = false;
  std::vector<std::pair<std::string, std::string>> statements = {
      {"begin", "BEGIN"},
      {"fence",
       "WITH head AS MATERIALIZED (SELECT 1 FROM log_head WHERE log_no = $1 AND epoch = $2 FOR SHARE) "
       "SELECT 1 / count(*) FROM head"},
      {"commit", "COMMIT"}};
  for (std::size_t n = 1; n <= pipelined_events_max; ++n) {
    statements.emplace_back(insert_name(event_table, n), insert_statement(event_table, n));
  }
  for (const Table& table : side_tables()) statements.emplace_back(insert_name(table, 1), insert_statement(table, 1));

  bool sent = PQenterPipelineMode(connection_) == 1;
  for (const auto& [name, sql] : statements)
    sent = sent && PQsendPrepare(connection_, name.c_str(), sql.c_str(), 0, nullptr);
  if (!sent || !PQpipelineSync(connection_)) return unavailable("preparing the append's statements");
  for (const auto& [name, sql] : statements) {
    if (await(PGRES_COMMAND_OK)) return unavailable("preparing " + sql);
  }
  drain();
  if (!PQexitPipelineMode(connection_)) return unavailable("preparing the append's statements");
  return success();
}

CommitResult AppendConnection::commit_pipeline(const RowBatch& batch, std::int64_t epoch, const CommitSteps& steps) {
  if (!send_rows(batch, epoch) || !flush_all()) return silence();
  steps.before_commit();
  if (!send_plain(connection_, "commit") || !PQpipelineSync(connection_) || !flush_all()) return silence();
  FAILPOINT("append.sent");
  steps.meanwhile();
  std::optional<CommitResult> failed = await(PGRES_COMMAND_OK);  // BEGIN
  if (!failed) failed = await_fence();
  if (!failed) failed = await_rows(event_table, batch.events.size());
  for (std::size_t i = 0; !failed && i < batch.rows.size(); ++i) failed = await_rows(table_of(batch.rows[i]), 1);
  return failed ? *failed : await_commit();
}

bool AppendConnection::send_rows(const RowBatch& batch, std::int64_t epoch) {
  const std::string log = std::to_string(log_no_), held = std::to_string(epoch);
  const char* const fence[] = {log.c_str(), held.c_str()};
  if (!PQenterPipelineMode(connection_) || !send_plain(connection_, "begin") ||
      !PQsendQueryPrepared(connection_, "fence", 2, fence, nullptr, nullptr, 0)) {
    return false;
  }
  buffer_.clear();
  for (const EventPtr& event : batch.events) append_fields(log_no_, *event, buffer_);
  if (!send_fields(connection_, insert_name(event_table, batch.events.size()), buffer_)) return false;
  for (const Row& row : batch.rows) {
    buffer_.clear();
    append_fields(log_no_, row, buffer_);
    if (!send_fields(connection_, insert_name(table_of(row), 1), buffer_)) return false;
  }
  return true;
}

}  // namespace muniment::store
