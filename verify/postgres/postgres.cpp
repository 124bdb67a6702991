#include "verify/postgres/postgres.hpp"

#include <fmt/format.h>
#include <libpq-fe.h>

#include <cstring>
#include <utility>

#include "verify/big_endian.hpp"

namespace muniment::verify {

struct ResultClear {
  void operator()(PGresult* result) const { PQclear(result); }
};
using ResultPtr = std::unique_ptr<PGresult, ResultClear>;

namespace {

// Postgres counts time from 2000-01-01.
constexpr std::int64_t postgres_epoch_micros = 946'684'800'000'000;
constexpr int rows_a_page = 256;
constexpr std::string_view insufficient_privilege = "42501", query_canceled = "57014";
constexpr int attempts_max = 20;

// Settings that the database, the role or the URI must not choose: the search path, read-only mode, the output format
// of values and definitions, and time limits.
constexpr const char* own_settings =
    "SET search_path = pg_catalog, public, pg_temp; SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY; "
    "SET standard_conforming_strings = on; SET quote_all_identifiers = off; SET intervalstyle = postgres; SET datestyle = 'ISO, MDY'; "
    "SET timezone = 'UTC'; SET bytea_output = hex; SET extra_float_digits = 1; SET xmloption = content; SET row_security = on; "
    "SET lock_timeout = 0; SET idle_session_timeout = 0; SET idle_in_transaction_session_timeout = 0";

// Assumes the role auditor of the log's owner (migrations/0005_roles.sql) without calling a function of the database.
// Returns no row if the role does not exist or the login is not a member. Also returns no row if the auditor could see
// less than the login, because rows hidden by a revoked right or a row policy would escape verification.
constexpr const char* take_role_of_auditor = R"(
  SELECT set_config('role', a.rolname, false)
  FROM pg_class e JOIN pg_roles a ON a.rolname = regexp_replace(pg_get_userbyid(e.relowner), '_owner$', '_auditor')
  WHERE e.oid = to_regclass('public.event') AND pg_get_userbyid(e.relowner) ~ '_owner$' AND pg_has_role(a.oid, 'MEMBER')
    AND NOT EXISTS (
      SELECT FROM pg_class t
      WHERE t.relnamespace = e.relnamespace
        AND t.relname IN ('log_head', 'event', 'checkpoint', 'checkpoint_note', 'run', 'artifact', 'manifest', 'snapshot',
                          'claim', 'evidence', 'evidence_link', 'task_change', 'task_evidence', 'corpus', 'document', 'chunk', 'feedback', 'follower',
                          'archived_partition')
        AND (NOT has_table_privilege(a.oid, t.oid, 'SELECT')
             OR t.relrowsecurity AND (
                NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = t.oid AND p.polpermissive AND p.polcmd IN ('r', '*')
                              AND a.oid = ANY (p.polroles) AND pg_get_expr(p.polqual, p.polrelid) = 'true')
                OR EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = t.oid AND NOT p.polpermissive)))))";

Error unavailable(std::string_view doing, const char* words) {
  std::string_view text(words);
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  return {Errc::unavailable, fmt::format("{}: {}", doing, text)};
}

}  // namespace

std::optional<std::string> Row::optional_text(std::size_t column) const {
  if (null(column)) return std::nullopt;
  return text(column);
}

std::int64_t Row::integer(std::size_t column) const {
  const std::string_view value = bytes(column);
  switch (value.size()) {
    case 2: return static_cast<std::int16_t>(big_endian(value));
    case 4: return static_cast<std::int32_t>(big_endian(value));
    case 8: return static_cast<std::int64_t>(big_endian(value));
    default: return 0;
  }
}

Time Row::time(std::size_t column) const {
  const std::int64_t micros = integer(column);  // 'infinity' is the largest
  return {micros > INT64_MAX - postgres_epoch_micros ? INT64_MAX : micros + postgres_epoch_micros};
}

Uuid Row::uuid(std::size_t column) const {
  Uuid id;
  if (bytes(column).size() == id.bytes.size()) std::memcpy(id.bytes.data(), bytes(column).data(), id.bytes.size());
  return id;
}

std::string_view Row::jsonb(std::size_t column) const {
  std::string_view value = bytes(column);
  if (!value.empty()) value.remove_prefix(1);
  return value;
}

struct Connection::Impl {
  PGconn* connection = nullptr;
  char* message = nullptr;  // holds the current row
  bool at_start = false;    // the next message begins with the header of the COPY

  ~Impl() {
    PQfreemem(message);
    PQfinish(connection);
  }

  Result<ResultPtr> execute(const std::string& sql) {
    ResultPtr result(PQexec(connection, sql.c_str()));
    const ExecStatusType status = PQresultStatus(result.get());
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_COPY_OUT) return result;
    return unavailable("reading Postgres", PQerrorMessage(connection));
  }

  // Removes the time limit of statements, which a database may set to a millisecond. On a busy machine that limit can
  // interrupt this statement too, so it is retried.
  Status lift_time_limit() {
    for (int attempt = 1;; ++attempt) {
      const ResultPtr set(PQexec(connection, "SET statement_timeout = 0"));
      if (PQresultStatus(set.get()) == PGRES_COMMAND_OK) return success();
      const char* const state = PQresultErrorField(set.get(), PG_DIAG_SQLSTATE);
      if (state == nullptr || state != query_canceled || attempt == attempts_max)
        return unavailable("lifting the time limit of statements", PQerrorMessage(connection));
    }
  }

  // A server may refuse the role even to a member (GRANT … WITH SET FALSE). The connection then keeps the login's role.
  Status read_as_auditor() {
    RETURN_IF_ERROR(lift_time_limit());
    auto set = execute(own_settings);
    if (!set) return std::move(set).error();
    const ResultPtr taken(PQexec(connection, take_role_of_auditor));
    if (PQresultStatus(taken.get()) == PGRES_TUPLES_OK) return success();
    const char* const state = PQresultErrorField(taken.get(), PG_DIAG_SQLSTATE);
    if (state != nullptr && state == insufficient_privilege) return success();
    return unavailable("assuming the role auditor", PQerrorMessage(connection));
  }
};

Connection::Connection(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Connection::Connection(Connection&&) noexcept = default;
Connection& Connection::operator=(Connection&&) noexcept = default;
Connection::~Connection() = default;

Result<Connection> Connection::open(const std::string& uri) {
  // Keywords after dbname override the settings of the URI; those before it are only defaults.
  // The option outranks a time limit that the database or the role sets, from the first statement on.
  const char* const keys[] = {"connect_timeout", "options", "dbname", "application_name", "client_encoding", nullptr};
  const char* const values[] = {"10", "-c statement_timeout=0", uri.c_str(), "muniment-verify", "UTF8", nullptr};
  auto impl = std::make_unique<Impl>();
  impl->connection = PQconnectdbParams(keys, values, 1);
  if (PQstatus(impl->connection) != CONNECTION_OK) {
    return unavailable("connecting to Postgres", PQerrorMessage(impl->connection));
  }
  RETURN_IF_ERROR(impl->read_as_auditor());
  return Connection(std::move(impl));
}

Status Connection::begin(const std::string& snapshot) {
  // Ranges are read through the primary key. Without these settings, Postgres would scan and sort a table that was
  // never analysed once for each range.
  std::string sql = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;";
  if (!snapshot.empty()) sql += fmt::format("SET TRANSACTION SNAPSHOT '{}';", snapshot);
  sql +=
      "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0;"
      "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL jit = off;"
      "SET LOCAL enable_sort = off; SET LOCAL max_parallel_workers_per_gather = 0;";
  auto done = impl_->execute(sql);
  if (!done) return std::move(done).error();
  return success();
}

Result<std::string> Connection::export_snapshot() {
  ASSIGN_OR_RETURN(const ResultPtr result, impl_->execute("SELECT pg_export_snapshot()"));
  return std::string(PQgetvalue(result.get(), 0, 0));
}

Result<std::optional<std::int64_t>> Connection::integer(const std::string& select) {
  ASSIGN_OR_RETURN(const ResultPtr result, impl_->execute(select));
  if (PQntuples(result.get()) == 0 || PQgetisnull(result.get(), 0, 0)) return std::optional<std::int64_t>();
  return std::optional<std::int64_t>(std::strtoll(PQgetvalue(result.get(), 0, 0), nullptr, 10));
}

Status Connection::start_copy(const std::string& select) {
  auto result = impl_->execute("COPY (" + select + ") TO STDOUT (FORMAT binary)");
  if (!result) return std::move(result).error();
  impl_->at_start = true;
  return success();
}

Result<bool> Connection::next(Row& row) {
  PQfreemem(impl_->message);
  impl_->message = nullptr;
  const int size = PQgetCopyData(impl_->connection, &impl_->message, 0);
  if (size < 0) {
    const ResultPtr end(PQgetResult(impl_->connection));
    if (size == -1 && PQresultStatus(end.get()) == PGRES_COMMAND_OK) {
      const ResultPtr nothing_more(PQgetResult(impl_->connection));
      return false;
    }
    return unavailable("reading Postgres", PQerrorMessage(impl_->connection));
  }
  const bool first = std::exchange(impl_->at_start, false);
  ASSIGN_OR_RETURN(const bool is_row,
                   parse_copy_row({impl_->message, static_cast<std::size_t>(size)}, first, row.fields_));
  return is_row ? Result<bool>(true) : next(row);  // after the trailer, the COPY ends
}

struct Cursor::Impl {
  Connection::Impl* connection = nullptr;
  std::string name, fetch;
  ResultPtr page;
  int row = 0;

  ~Impl() {
    if (PQtransactionStatus(connection->connection) == PQTRANS_INTRANS) {
      (void)connection->execute("CLOSE " + name).ok();
    }
  }
};

Cursor::Cursor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Cursor::Cursor(Cursor&&) noexcept = default;
Cursor& Cursor::operator=(Cursor&&) noexcept = default;
Cursor::~Cursor() = default;

Result<Cursor> Cursor::open(Connection& connection, const std::string& name, const std::string& select) {
  ASSIGN_OR_RETURN(const ResultPtr done,
                   connection.impl_->execute(fmt::format("DECLARE {} BINARY CURSOR FOR {}", name, select)));
  auto impl = std::make_unique<Impl>();
  impl->connection = connection.impl_.get();
  impl->name = name;
  impl->fetch = fmt::format("FETCH {} FROM {}", rows_a_page, name);
  return Cursor(std::move(impl));
}

Result<bool> Cursor::next(Row& row) {
  if (impl_->page == nullptr || impl_->row == PQntuples(impl_->page.get())) {
    ASSIGN_OR_RETURN(impl_->page, impl_->connection->execute(impl_->fetch));
    impl_->row = 0;
    if (PQntuples(impl_->page.get()) == 0) return false;
  }
  const PGresult* const page = impl_->page.get();
  row.fields_.clear();
  for (int column = 0; column < PQnfields(page); ++column) {
    if (PQgetisnull(page, impl_->row, column)) {
      row.fields_.emplace_back();
    } else {
      row.fields_.emplace_back(std::string_view(PQgetvalue(page, impl_->row, column),
                                                static_cast<std::size_t>(PQgetlength(page, impl_->row, column))));
    }
  }
  ++impl_->row;
  return true;
}

}  // namespace muniment::verify
