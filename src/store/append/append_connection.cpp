#include "store/append/append_connection.hpp"

#include <libpq-fe.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

#include "base/log.hpp"
#include "base/metrics.hpp"
#include "base/process/failpoint.hpp"
#include "store/postgres/durability.hpp"

namespace muniment::store {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// SQLSTATE of a failed fence and of an INSERT that lost rows: both statements divide by a count.
constexpr std::string_view division_by_zero = "22012";
constexpr std::string_view check_violation = "23514";
// Begins a query with the rights of the login, which may read pg_stat_replication. The role returns after the query.
constexpr std::string_view as_login = "SELECT set_config('role', 'none', true); ";
constexpr std::string_view daemon_name = "munimentd";
constexpr std::size_t application_name_bytes_max = 63;
constexpr milliseconds standby_pause_least{1}, standby_pause_most{50};

std::string sqlstate_of(const pg_result* result) {
  const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  return state ? state : "";
}

// Returns the application_name "munimentd HOST:FOLDER". Postgres limits it to 63 bytes of ASCII, so other bytes become
// "?", and the middle of a longer one is omitted.
std::string session_name(const std::string& folder) {
  std::array<char, 256> host{};
  if (folder.empty() || ::gethostname(host.data(), host.size() - 1) != 0) return std::string(daemon_name);
  std::string name = std::string(daemon_name) + " " + host.data() + ":" + folder;
  std::ranges::replace_if(
      name, [](char byte) { return byte < ' ' || byte > '~'; }, '?');
  if (name.size() > application_name_bytes_max) {
    const std::string start = std::string(daemon_name) + " ...";
    name = start + name.substr(name.size() - (application_name_bytes_max - start.size()));
  }
  return name;
}

}  // namespace

void AppendConnection::ResultDeleter::operator()(pg_result* result) const { PQclear(result); }

AppendConnection::AppendConnection(std::string uri, std::int16_t log_no, Uuid writer, const std::string& folder,
                                   Standbys standbys)
    : uri_(std::move(uri)),
      log_no_(log_no),
      writer_(writer),
      name_(session_name(folder)),
      standbys_(std::move(standbys)) {}

AppendConnection::~AppendConnection() { disconnect(); }

void AppendConnection::disconnect() {
  if (connection_) PQfinish(connection_);
  connection_ = nullptr;
}

bool AppendConnection::healthy() const { return connection_ && PQstatus(connection_) == CONNECTION_OK; }

Error AppendConnection::unavailable(std::string_view doing) const {
  std::string text = connection_ ? PQerrorMessage(connection_) : "no connection";
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return Error(Errc::unavailable, std::string(doing) + ": " + text);
}

namespace {

// Returns the milliseconds until `deadline` for poll, at least 0.
int left_until(Deadline deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000));
}

bool poll_socket(pg_conn* connection, short events, Deadline deadline) {
  pollfd waiting{PQsocket(connection), events, 0};
  for (;;) {
    const int ready = ::poll(&waiting, 1, left_until(deadline));
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR) return false;
  }
}

}  // namespace

bool AppendConnection::flush_all() {
  for (;;) {
    const int left = PQflush(connection_);
    if (left == 0) return true;
    if (left < 0) return false;
    // The server may refuse input until its output is read.
    if (!poll_socket(connection_, POLLIN | POLLOUT, deadline_)) {
      timed_out_ = true;
      return false;
    }
    if (!PQconsumeInput(connection_)) return false;
  }
}

bool AppendConnection::wait_for_input() {
  while (PQisBusy(connection_)) {
    if (!poll_socket(connection_, POLLIN, deadline_)) {
      timed_out_ = true;
      return false;
    }
    if (!PQconsumeInput(connection_)) return false;
  }
  return true;
}

AppendConnection::PgResult AppendConnection::next_result() {
  if (!flush_all() || !wait_for_input()) return nullptr;
  PgResult result(PQgetResult(connection_));
  // In a pipeline, a null result ends the results of a statement; only the result of the Sync has none.
  if (result && PQpipelineStatus(connection_) != PQ_PIPELINE_OFF &&
      PQresultStatus(result.get()) != PGRES_PIPELINE_SYNC && wait_for_input()) {
    PQclear(PQgetResult(connection_));
  }
  return result;
}

void AppendConnection::drain() {
  while (PgResult result = next_result()) {
    if (PQresultStatus(result.get()) == PGRES_COPY_IN) PQputCopyEnd(connection_, "given up");
  }
}

Result<AppendConnection::PgResult> AppendConnection::query(std::string_view name, const std::string& sql,
                                                           milliseconds at_most) {
  const metrics::Timer timer(metrics::process().statements.of(name));
  deadline_ = steady_clock::now() + at_most;
  timed_out_ = false;
  warning_.clear();
  if (!connection_ || !PQsendQuery(connection_, sql.c_str())) return unavailable(sql);
  PgResult last;
  while (PgResult result = next_result()) last = std::move(result);
  if (!healthy() || timed_out_ || !last) return unavailable("Postgres does not answer");
  const ExecStatusType status = PQresultStatus(last.get());
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) return unavailable(sql);
  return last;
}

// A COMMIT whose wait for the standbys was cancelled succeeds with only a warning, but a failover can lose the commit.
// The warning has no SQLSTATE of its own and may be in any language, so every warning counts as a failure.
void AppendConnection::note_warning(const pg_result* notice) {
  const char* severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
  const char* text = PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY);
  if (!severity || std::strcmp(severity, "WARNING") != 0) return;
  warning_ = text ? text : "a warning";
  log_warning("Postgres warns", {{"message", warning_}});
}

Status AppendConnection::connect(milliseconds at_most) {
  disconnect();
  if (FAILPOINT_FAILS("append.connect")) return Error(Errc::unavailable, "connecting to Postgres: no answer");
  deadline_ = steady_clock::now() + at_most;
  connection_ = PQconnectStart(uri_.c_str());
  if (!connection_) return Error(Errc::unavailable, "connecting to Postgres: out of memory");
  PostgresPollingStatusType wanted = PGRES_POLLING_WRITING;
  while (wanted != PGRES_POLLING_OK) {
    if (PQstatus(connection_) == CONNECTION_BAD || wanted == PGRES_POLLING_FAILED ||
        !poll_socket(connection_, wanted == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline_)) {
      Error error = unavailable("connecting to Postgres");
      disconnect();
      return error;
    }
    wanted = PQconnectPoll(connection_);
  }
  if (PQsetnonblocking(connection_, 1) != 0) return unavailable("setting up the append connection");
  PQsetNoticeReceiver(
      connection_,
      [](void* self, const pg_result* notice) { static_cast<AppendConnection*>(self)->note_warning(notice); }, this);

  const std::unique_ptr<char, decltype(&PQfreemem)> name(PQescapeLiteral(connection_, name_.data(), name_.size()),
                                                         &PQfreemem);
  if (!name) return unavailable("setting up the append connection");
  RETURN_IF_ERROR(query(
      "append_settings",
      std::string("SET application_name = ") + name.get() +
          "; SET default_transaction_isolation = 'read committed'; SET TimeZone = 'UTC'; "
          "SET search_path = public; SET jit = off; SET plan_cache_mode = force_generic_plan; SET lock_timeout = '5s'; SET synchronous_commit = on; "
          "SET client_min_messages = warning; SELECT set_config('role', muniment_role('writer'), false)",
      at_most));
  return prepare(at_most);
}

Result<bool> AppendConnection::try_lock() {
  // The first key is Muniment's number space for advisory locks ("muni").
  ASSIGN_OR_RETURN(PgResult result,
                   query("append_lock", "SELECT pg_try_advisory_lock(1836412521, " + std::to_string(log_no_) + ")",
                         milliseconds(10'000)));
  return std::strcmp(PQgetvalue(result.get(), 0, 0), "t") == 0;
}

// The view hides the names of other users' sessions, and the daemons have the same login.
Result<std::string> AppendConnection::lock_holder() {
  ASSIGN_OR_RETURN(
      PgResult result,
      query("append_lock_holder",
            "RESET ROLE; SELECT coalesce(application_name, '') FROM pg_locks JOIN pg_stat_activity USING (pid) "
            "WHERE locktype = 'advisory' AND granted AND classid = 1836412521 AND objid = " +
                std::to_string(log_no_) +
                " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
            milliseconds(10'000)));
  const std::string name = PQntuples(result.get()) == 0 ? "" : PQgetvalue(result.get(), 0, 0);
  return name.starts_with(std::string(daemon_name) + " ") ? name.substr(daemon_name.size() + 1) : "";
}

Result<TakenOver> AppendConnection::take_over(std::optional<std::int64_t> held) {
  if (FAILPOINT_FAILS("append.take_over")) return unavailable("raising the epoch");
  const std::string log = std::to_string(log_no_);
  const std::string writer = "'" + writer_.text() + "'";
  std::string raise = "UPDATE log_head SET epoch = epoch + 1, writer = " + writer + " WHERE log_no = " + log;
  if (held) raise += " AND (epoch = " + std::to_string(*held) + " OR writer = " + writer + ")";
  ASSIGN_OR_RETURN(PgResult result,
                   query("append_take_over", raise + " RETURNING log_id, epoch", milliseconds(10'000)));
  if (PQntuples(result.get()) != 1 && !held) {
    return Error(Errc::system_error,
                 "the epoch of log " + log +
                     " cannot be raised: Postgres did not change its row of log_head. That table was altered: run "
                     "muniment-verify, and see docs/runbook.md#tables_changed");
  }
  if (PQntuples(result.get()) != 1) {
    return Error(Errc::conflict, "log " + log + " was taken over by another daemon; this one stops writing");
  }
  if (!warning_.empty()) return Error(Errc::unavailable, "raising the epoch: " + warning_);
  TakenOver taken;
  taken.log_id = parse_uuid(PQgetvalue(result.get(), 0, 0)).value_or(Uuid{});
  taken.epoch = std::stoll(PQgetvalue(result.get(), 0, 1));
  return taken;
}

Result<LastRow> AppendConnection::one_row(std::string_view name, const std::string& which) {
  ASSIGN_OR_RETURN(
      PgResult result,
      query(name, "SELECT seq, encode(run_hash, 'hex') FROM event WHERE log_no = " + std::to_string(log_no_) + which,
            milliseconds(10'000)));
  LastRow row;
  if (PQntuples(result.get()) == 0) return row;
  row.seq = std::stoll(PQgetvalue(result.get(), 0, 0));
  row.run_hash = hash_from_hex(PQgetvalue(result.get(), 0, 1)).value_or(Hash{});
  return row;
}

Result<LastRow> AppendConnection::last_row() { return one_row("append_last_row", " ORDER BY seq DESC LIMIT 1"); }

Result<LastRow> AppendConnection::row_at(std::int64_t seq) {
  return one_row("append_row_at", " AND seq = " + std::to_string(seq));
}

Result<std::string> AppendConnection::unsafe_setting(milliseconds at_most) {
  ASSIGN_OR_RETURN(PgResult result,
                   query("append_durability", std::string(as_login) + std::string(durability_sql), at_most));
  const auto at = [&](int row, int column) { return std::string(PQgetvalue(result.get(), row, column)); };
  std::vector<ServerSetting> settings;
  for (int row = 0; row < PQntuples(result.get()); ++row) settings.push_back({at(row, 0), at(row, 1), at(row, 2)});
  return store::unsafe_setting(settings, standbys_, uri_, at(0, 3), at(0, 4));
}

// The end of the flushed WAL is an upper bound of the last commit's position. A receiver that replays nothing
// (pg_receivewal) cannot be promoted, and several receivers of one name count once.
Status AppendConnection::await_standbys(milliseconds at_most) {
  if (standbys_.names.empty()) return success();
  const Deadline deadline = steady_clock::now() + at_most;
  std::string names, end = "pg_current_wal_flush_lsn()";
  for (const std::string& name : standbys_.names) {
    const std::unique_ptr<char, decltype(&PQfreemem)> quoted(PQescapeLiteral(connection_, name.data(), name.size()),
                                                             &PQfreemem);
    if (!quoted) return unavailable("naming the standbys");
    names += (names.empty() ? "" : ", ") + std::string(quoted.get());
  }
  for (milliseconds pause = standby_pause_least;; pause = std::min(pause * 2, standby_pause_most)) {
    ASSIGN_OR_RETURN(
        const PgResult result,
        query(
            "append_standbys",
            std::string(as_login) + "WITH wal AS MATERIALIZED (SELECT " + end +
                " AS flushed) SELECT flushed, (SELECT count(DISTINCT application_name) FROM pg_stat_replication WHERE "
                "application_name IN (" +
                names + ") AND replay_lsn IS NOT NULL AND flush_lsn >= flushed) FROM wal",
            std::max(milliseconds(left_until(deadline)), standby_pause_most)));
    const std::string confirmed = PQgetvalue(result.get(), 0, 1);
    if (std::stoll(confirmed) >= standbys_.required) return success();
    if (steady_clock::now() >= deadline) {
      return Error(Errc::unavailable, "standbys requires " + std::to_string(standbys_.required) + " of " + names +
                                          ", but " + confirmed + " have confirmed the last commit");
    }
    end = "'" + std::string(PQgetvalue(result.get(), 0, 0)) + "'::pg_lsn";
    std::this_thread::sleep_for(pause);
  }
}

Status AppendConnection::make_partition(std::int64_t seq) {
  const std::string log = std::to_string(log_no_) + "::smallint";
  ASSIGN_OR_RETURN(const PgResult made, query("append_make_partition",
                                              "SELECT make_event_partition(" + log + ", " + std::to_string(seq) +
                                                  " >> event_partition_bits(" + log + "))",
                                              milliseconds(10'000)));
  return success();
}

Result<std::int64_t> AppendConnection::next_run_no() {
  ASSIGN_OR_RETURN(PgResult result,
                   query("append_next_run_no",
                         "SELECT coalesce(max(run_no), 0) + 1 FROM event WHERE log_no = " + std::to_string(log_no_),
                         milliseconds(10'000)));
  return std::stoll(PQgetvalue(result.get(), 0, 0));
}

Result<events::MerkleEdge> AppendConnection::last_checkpoint(std::int64_t size_max) {
  ASSIGN_OR_RETURN(
      PgResult result,
      query("append_last_checkpoint",
            "SELECT size, encode(edge, 'hex'), encode(root, 'hex') FROM checkpoint WHERE log_no = " +
                std::to_string(log_no_) + " AND size <= " + std::to_string(size_max) + " ORDER BY size DESC LIMIT 1",
            milliseconds(10'000)));
  if (PQntuples(result.get()) == 0) return events::MerkleEdge{};
  const std::string bytes = from_hex(PQgetvalue(result.get(), 0, 1)).value_or("");
  auto edge = events::MerkleEdge::decode(std::stoll(PQgetvalue(result.get(), 0, 0)), bytes);
  if (!edge || to_hex(edge->root()) != PQgetvalue(result.get(), 0, 2)) {
    return Error(Errc::corrupt, "the last checkpoint does not fit its own root. Run muniment-verify");
  }
  return *std::move(edge);
}

CommitResult AppendConnection::silence() const {
  return {CommitOutcome::unknown, "", timed_out_ ? "Postgres does not answer" : PQerrorMessage(connection_)};
}

CommitResult AppendConnection::failure(const pg_result* result) const {
  const std::string state = sqlstate_of(result);
  const char* text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  const std::string message = text ? text : PQresultErrorMessage(result);
  // SQLSTATEs 57P01 to 57P03 and class 08 report a closing connection; during a COMMIT the outcome is then unknown.
  if (state.empty() || !healthy() || state.starts_with("57P") || state.starts_with("08")) {
    return {CommitOutcome::unknown, state, message};
  }
  if (!state.starts_with("22") && !state.starts_with("23")) return {CommitOutcome::rolled_back, state, message};
  const char* constraint = PQresultErrorField(result, PG_DIAG_CONSTRAINT_NAME);
  // A row without a partition is a check violation without a constraint name.
  if (state == check_violation && !constraint) return {CommitOutcome::no_partition, state, message};
  return {CommitOutcome::refused, state, message, constraint ? constraint : ""};
}

std::optional<CommitResult> AppendConnection::await(int status) {
  const PgResult result = next_result();
  if (!result) return silence();
  if (PQresultStatus(result.get()) != status) return failure(result.get());
  return std::nullopt;
}

std::optional<CommitResult> AppendConnection::await_fence() {
  std::optional<CommitResult> failed = await(PGRES_TUPLES_OK);
  if (failed && failed->sqlstate == division_by_zero) failed = CommitResult{CommitOutcome::fenced, "", ""};
  return failed;
}

CommitResult AppendConnection::rows_lost(const Table& table, std::size_t count) {
  return {CommitOutcome::rows_lost, "",
          "Postgres did not insert all of the " + std::to_string(count) + " rows of the table " +
              std::string(table.name) + " that were sent"};
}

// The INSERT (append_pipeline.cpp) fails if a row is missing. Postgres then skips the following statements.
std::optional<CommitResult> AppendConnection::await_rows(const Table& table, std::size_t count) {
  std::optional<CommitResult> failed = await(PGRES_TUPLES_OK);
  if (failed && failed->sqlstate == division_by_zero) failed = rows_lost(table, count);
  return failed;
}

CommitResult AppendConnection::await_commit() {
  const PgResult result = next_result();
  if (!result) return silence();
  if (PQresultStatus(result.get()) != PGRES_COMMAND_OK) return failure(result.get());
  // The COMMIT of a failed transaction has the tag ROLLBACK and no error.
  if (std::strcmp(PQcmdStatus(result.get()), "COMMIT") != 0) return {CommitOutcome::rolled_back, "", "rolled back"};
  if (!warning_.empty()) return {CommitOutcome::unknown, "", warning_};
  return {CommitOutcome::committed};
}

CommitResult AppendConnection::commit(const RowBatch& batch, std::int64_t epoch, milliseconds at_most,
                                      const CommitSteps& steps) {
  deadline_ = steady_clock::now() + at_most;
  timed_out_ = false;
  warning_.clear();
  FAILPOINT("append.before_send");
  if (FAILPOINT_FAILS("append.disk_full")) return {CommitOutcome::rolled_back, "53100", "no space left on device"};
  if (FAILPOINT_FAILS("append.cut_before_send")) ::shutdown(PQsocket(connection_), SHUT_RDWR);
  const bool small = batch.events.size() <= pipelined_events_max && batch.rows.size() <= pipelined_rows_max;
  const Monotonic began = steady_clock::now();
  CommitResult result = small ? commit_pipeline(batch, epoch, steps) : commit_copy(batch, epoch, steps);
  const auto taken = steady_clock::now() - began;
  (small ? pipeline_seconds_ : copy_seconds_).record(taken);
  metrics::process().append_commit_seconds.record(taken);
  metrics::process().append_batch_events.record(static_cast<std::int64_t>(batch.events.size()));
  if (result.outcome != CommitOutcome::unknown) {
    drain();
    PQexitPipelineMode(connection_);
    if (result.outcome != CommitOutcome::committed) query("append_rollback", "ROLLBACK", milliseconds(1'000)).ok();
  }
  if (!healthy()) result = {CommitOutcome::unknown, result.sqlstate, result.message};
  if (result.outcome == CommitOutcome::committed) {
    if (const Status confirmed = await_standbys(at_most); !confirmed)
      result = {CommitOutcome::unknown, "", confirmed.error().message};
  }
  FAILPOINT("append.after_commit");
  if (FAILPOINT_FAILS("append.cut_after_commit")) {  // committed, which the caller cannot know
    ::shutdown(PQsocket(connection_), SHUT_RDWR);
    return {CommitOutcome::unknown, "", "the connection was cut"};
  }
  return result;
}

CommitResult AppendConnection::store_checkpoint(const events::MerkleEdge& edge, Time now, std::int64_t epoch,
                                                milliseconds at_most) {
  const std::string log = std::to_string(log_no_);
  auto result = query("append_checkpoint",
                      "WITH head AS MATERIALIZED (SELECT 1 FROM log_head WHERE log_no = " + log +
                          " AND epoch = " + std::to_string(epoch) +
                          " FOR SHARE) INSERT INTO checkpoint (log_no, size, root, edge, recorded_at) SELECT " + log +
                          ", " + std::to_string(edge.size()) + ", '\\x" + to_hex(edge.root()) + "', '\\x" +
                          to_hex(edge.encode()) + "', '" + format_time(now) +
                          "' FROM head WHERE NOT EXISTS (SELECT 1 FROM checkpoint WHERE log_no = " + log +
                          " AND size = " + std::to_string(edge.size()) + ")",
                      at_most);
  if (!result) return {CommitOutcome::unknown, "", result.error().message};
  return {CommitOutcome::committed};
}

}  // namespace muniment::store
