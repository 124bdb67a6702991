#include "cli/export/connection.hpp"

#include <fmt/format.h>
#include <libpq-fe.h>

#include <utility>

#include "base/process/libpq_environment.hpp"
#include "cli/connect/postgres_access.hpp"

namespace muniment::cli {
namespace {

struct PgClear {
  void operator()(PGresult* result) const { PQclear(result); }
};
using PgResult = std::unique_ptr<PGresult, PgClear>;

constexpr std::string_view copy_signature("PGCOPY\n\377\r\n\0", 11);
constexpr std::size_t copy_header_bytes = copy_signature.size() + 8;  // flags and the length of an (absent) extension

// The index returns rows in order of seq. A sort would read all rows before the first one is sent.
constexpr const char* export_settings =
    "SET search_path = pg_catalog, public, pg_temp;"
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;"
    "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL jit = off;"
    "SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off; SET LOCAL max_parallel_workers_per_gather = 0";

Error cannot_export(std::string_view doing, const char* words) {
  std::string_view text(words);
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  return {Errc::unavailable, fmt::format("{}: {}", doing, text)};
}

}  // namespace

std::int64_t export_integer(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<std::uint8_t>(byte);
  switch (bytes.size()) {
    case 2: return static_cast<std::int16_t>(value);
    case 4: return static_cast<std::int32_t>(value);
    case 8: return static_cast<std::int64_t>(value);
    default: return 0;
  }
}

Result<bool> parse_export_row(std::string_view message, bool first, ExportFields& fields) {
  const Error broken(Errc::unavailable, "reading Postgres: invalid row in a COPY");
  if (first) {
    if (message.size() < copy_header_bytes || !message.starts_with(copy_signature)) return broken;
    message.remove_prefix(copy_header_bytes);
  }
  if (message.size() < 2) return broken;
  const std::int64_t count = export_integer(message.substr(0, 2));
  message.remove_prefix(2);
  if (count == -1) return message.empty() ? Result<bool>(false) : Result<bool>(broken);
  fields.clear();
  for (std::int64_t i = 0; i < count; ++i) {
    if (message.size() < 4) return broken;
    const std::int64_t size = export_integer(message.substr(0, 4));
    message.remove_prefix(4);
    if (size == -1) {
      fields.emplace_back();
      continue;
    }
    if (size < 0 || static_cast<std::uint64_t>(size) > message.size()) return broken;
    fields.emplace_back(message.substr(0, static_cast<std::size_t>(size)));
    message.remove_prefix(static_cast<std::size_t>(size));
  }
  return message.empty() ? Result<bool>(true) : Result<bool>(broken);
}

struct ExportConnection::Impl {
  PGconn* connection = nullptr;
  char* message = nullptr;  // the current row
  bool at_start = false;    // the next message begins with the header of the COPY

  ~Impl() {
    PQfreemem(message);
    PQfinish(connection);
  }

  Status execute(const std::string& sql) const {
    const PgResult result(PQexec(connection, sql.c_str()));
    const ExecStatusType status = PQresultStatus(result.get());
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_COPY_OUT) return success();
    return cannot_export("reading Postgres", PQerrorMessage(connection));
  }
};

ExportConnection::ExportConnection(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ExportConnection::ExportConnection(ExportConnection&&) noexcept = default;
ExportConnection& ExportConnection::operator=(ExportConnection&&) noexcept = default;
ExportConnection::~ExportConnection() = default;

Result<ExportConnection> ExportConnection::open(const std::string& uri) {
  ignore_libpq_variables(uri);
  const char* const keys[] = {"connect_timeout", "dbname", "application_name", "client_encoding", nullptr};
  const char* const values[] = {"10", uri.c_str(), "muniment export", "UTF8", nullptr};
  auto impl = std::make_unique<Impl>();
  impl->connection = PQconnectdbParams(keys, values, 1);
  if (PQstatus(impl->connection) != CONNECTION_OK) {
    const char* const host = PQhost(impl->connection);
    const char* const port = PQport(impl->connection);
    return not_reached({PQerrorMessage(impl->connection), host == nullptr ? "" : host, port == nullptr ? "" : port,
                        PQconnectionNeedsPassword(impl->connection) != 0},
                       "To export a run of yours: muniment audit export RUN, or muniment event list --run RUN");
  }
  // If the login may not assume the role, or the database has no roles, the login's own rights are used.
  (void)impl->execute("SELECT set_config('role', public.muniment_role('auditor'), false)").ok();
  RETURN_IF_ERROR(impl->execute(export_settings));
  return ExportConnection(std::move(impl));
}

Status ExportConnection::start(const std::string& select) {
  RETURN_IF_ERROR(impl_->execute("COPY (" + select + ") TO STDOUT (FORMAT binary)"));
  impl_->at_start = true;
  return success();
}

Result<bool> ExportConnection::next(ExportFields& fields) {
  for (;;) {
    PQfreemem(std::exchange(impl_->message, nullptr));
    const int size = PQgetCopyData(impl_->connection, &impl_->message, 0);
    if (size < 0) {
      const PgResult end(PQgetResult(impl_->connection));
      if (size != -1 || PQresultStatus(end.get()) != PGRES_COMMAND_OK) {
        return cannot_export("reading Postgres", PQerrorMessage(impl_->connection));
      }
      const PgResult nothing_more(PQgetResult(impl_->connection));
      return false;
    }
    const std::string_view message(impl_->message, static_cast<std::size_t>(size));
    ASSIGN_OR_RETURN(const bool is_row, parse_export_row(message, std::exchange(impl_->at_start, false), fields));
    if (is_row) return true;  // after the trailer, the COPY ends
  }
}

Result<std::string> ExportConnection::quoted(const std::string& text) const {
  const std::unique_ptr<char, decltype(&PQfreemem)> literal(
      PQescapeLiteral(impl_->connection, text.data(), text.size()), &PQfreemem);
  if (!literal) return Error(Errc::invalid_argument, "not a valid string for Postgres: " + text);
  return std::string(literal.get());
}

}  // namespace muniment::cli
