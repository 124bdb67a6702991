// Implements reporter_login.hpp with libpq, because libpqxx 6 hashes passwords only for md5.
#include "store/postgres/reporter_login.hpp"

#include <fmt/format.h>
#include <libpq-fe.h>
#include <sys/stat.h>

#include <cstring>
#include <memory>

#include "base/files/file.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"

namespace muniment::store {
namespace {

struct Closer {
  void operator()(PGconn* connection) const { PQfinish(connection); }
  void operator()(PGresult* result) const { PQclear(result); }
  void operator()(char* text) const { PQfreemem(text); }
};

// Limits of the login. Most of them only protect against mistakes, because a user can change them after login. The
// rights, the number of connections and the limit on temporary files cannot be changed by the user.
constexpr const char* make_login = R"(
DO $$
BEGIN
  PERFORM set_config('client_min_messages', 'warning', true);
  IF to_regrole('reporter') IS NULL THEN
    CREATE ROLE reporter LOGIN CONNECTION LIMIT {connections};
    ALTER ROLE reporter SET statement_timeout = '{seconds}s';
    ALTER ROLE reporter SET default_transaction_read_only = on;
    ALTER ROLE reporter SET idle_in_transaction_session_timeout = '60s';
    ALTER ROLE reporter SET lock_timeout = '5s';
    ALTER ROLE reporter SET client_connection_check_interval = '2s';
    ALTER ROLE reporter SET temp_file_limit = '4GB';
    ALTER ROLE reporter SET search_path = report, public;
    ALTER ROLE reporter SET max_parallel_workers_per_gather = 1;  -- agents append beside it
  END IF;
  EXECUTE format('GRANT %I TO reporter', public.muniment_role('reporter'));
  -- Revoke the default rights that write (temporary tables, large objects) or take locks that the daemon waits for.
  EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
  -- Migration 0005 granted this, but a restore does not restore rights on databases.
  EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO %I, %I', current_database(), public.muniment_role('owner'), public.muniment_role('writer'));
  REVOKE EXECUTE ON FUNCTION lo_creat(int), lo_create(oid), lo_from_bytea(oid, bytea) FROM PUBLIC;
  REVOKE EXECUTE ON FUNCTION pg_advisory_lock(bigint), pg_advisory_lock(int, int), pg_try_advisory_lock(bigint), pg_try_advisory_lock(int, int),
    pg_advisory_xact_lock(bigint), pg_advisory_xact_lock(int, int), pg_try_advisory_xact_lock(bigint), pg_try_advisory_xact_lock(int, int),
    pg_advisory_lock_shared(bigint), pg_advisory_lock_shared(int, int), pg_try_advisory_lock_shared(bigint), pg_try_advisory_lock_shared(int, int),
    pg_advisory_xact_lock_shared(bigint), pg_advisory_xact_lock_shared(int, int), pg_try_advisory_xact_lock_shared(bigint),
    pg_try_advisory_xact_lock_shared(int, int) FROM PUBLIC;
  EXECUTE format('GRANT EXECUTE ON FUNCTION pg_try_advisory_lock(int, int) TO %I', public.muniment_role('writer'));
  EXECUTE format('GRANT EXECUTE ON FUNCTION pg_advisory_xact_lock(int, int) TO %I, %I', public.muniment_role('writer'), public.muniment_role('redactor'));
END $$)";

Error failed(PGconn* connection) {
  std::string_view text(PQerrorMessage(connection));
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  return Error(Errc::unavailable, fmt::format("making the login of reporters: {}", text));
}

Status execute(PGconn* connection, const std::string& sql) {
  const std::unique_ptr<PGresult, Closer> result(PQexec(connection, sql.c_str()));
  return PQresultStatus(result.get()) == PGRES_COMMAND_OK ? success() : Status(failed(connection));
}

}  // namespace

Result<std::string> read_reporter_password(const std::string& path) {
  const std::string setting = fmt::format("reporter_password_file = \"{}\": ", path);
  const std::string runbook = " See docs/runbook.md (reporter).";
  auto opened = open_regular(path);
  if (!opened) return std::move(opened).error().within("reporter_password_file");
  struct stat about {};
  if (::fstat(opened->fd.get(), &about) != 0) return Error(Errc::system_error, setting + "cannot be examined");
  if ((about.st_mode & 077) != 0) {
    return Error(Errc::denied, fmt::format("{}others can read it (mode {:03o}); close it: chmod 600 {}.{}", setting,
                                           about.st_mode & 0777, path, runbook));
  }
  ASSIGN_OR_RETURN(std::string password, read_at(opened->fd, 0, limits::reporter_password_bytes_max + 3));
  if (password.ends_with('\n')) password.pop_back();
  if (password.ends_with('\r')) password.pop_back();
  if (password.empty())
    return Error(Errc::invalid_argument,
                 setting + "it is empty. Put a password into it: openssl rand -base64 24." + runbook);
  if (password.size() > limits::reporter_password_bytes_max) {
    return Error(Errc::invalid_argument, fmt::format("{}a password has at most {} bytes.{}", setting,
                                                     limits::reporter_password_bytes_max, runbook));
  }
  if (password.find_first_of(std::string_view("\n\r\0", 3)) != std::string::npos) {
    return Error(Errc::invalid_argument, setting + "it holds more than one line." + runbook);
  }
  return password;
}

Status make_reporter_login(const std::string& uri, const std::optional<std::string>& password) {
  const char* const keys[] = {"connect_timeout", "dbname", "application_name", "client_encoding", nullptr};
  const char* const values[] = {"10", uri.c_str(), "muniment", "UTF8", nullptr};
  const std::unique_ptr<PGconn, Closer> connection(PQconnectdbParams(keys, values, 1));
  if (PQstatus(connection.get()) != CONNECTION_OK) return failed(connection.get());
  PQsetNoticeProcessor(
      connection.get(),
      [](void*, const char* text) {
        log_warning("Postgres warns", {{"message", std::string(text, std::strcspn(text, "\n"))}});
      },
      nullptr);
  RETURN_IF_ERROR(execute(
      connection.get(), fmt::format(fmt::runtime(make_login), fmt::arg("connections", limits::reporter_connections_max),
                                    fmt::arg("seconds", limits::report_seconds_default))));
  if (!password) return execute(connection.get(), "ALTER ROLE reporter PASSWORD NULL");
  const std::unique_ptr<char, Closer> hashed(
      PQencryptPasswordConn(connection.get(), password->c_str(), "reporter", "scram-sha-256"));
  if (!hashed) return failed(connection.get());
  const std::unique_ptr<char, Closer> literal(
      PQescapeLiteral(connection.get(), hashed.get(), std::string_view(hashed.get()).size()));
  if (!literal) return failed(connection.get());
  return execute(connection.get(), std::string("ALTER ROLE reporter PASSWORD ") + literal.get());
}

}  // namespace muniment::store
