// Implements database_copy.hpp.
#include "store/postgres/database_copy.hpp"

#include <cstdlib>
#include <utility>

#include "store/postgres/child_process.hpp"
#include "store/read/pq.hpp"

namespace muniment::store {
namespace {

// The last column is true while an announced erasure is unfinished.
constexpr const char* logs_sql =
    "SELECT h.log_no, h.log_id, coalesce((SELECT max(seq) + 1 FROM event e WHERE e.log_no = h.log_no), 0), "
    "EXISTS (SELECT FROM event a JOIN event e ON e.log_no = a.log_no AND e.seq = (a.body ->> 'seq')::bigint "
    "WHERE a.log_no = h.log_no AND a.type = 'event.redacted' AND e.salt IS NOT NULL) OR "
    "EXISTS (SELECT FROM event a JOIN artifact f ON f.artifact_id = (a.body ->> 'artifact_id')::uuid "
    "WHERE a.log_no = h.log_no AND a.type = 'artifact.redacted' AND f.hash <> repeat('0', 64)) FROM log_head h ORDER BY 1";
constexpr const char* roles_sql =
    "SELECT r.rolname, r.rolbypassrls FROM pg_roles r, unnest(ARRAY['owner', 'writer', 'auditor', 'reporter', 'redactor']) kind "
    "WHERE r.rolname = muniment_role(kind) ORDER BY 1";
// An erased artifact keeps its row, with a hash of zeros.
constexpr const char* files_sql =
    "SELECT path, hash, size_bytes FROM artifact WHERE hash <> repeat('0', 64) ORDER BY path";

// Command lines are visible to all users, so a password in a URI is passed in the environment.
struct Login {
  std::string uri;
  std::vector<std::string> environment{"PATH=/usr/bin:/bin", "LC_ALL=C", "PGCONNECT_TIMEOUT=10"};
};

Login login_of(const std::string& uri) {
  Login login{uri};
  if (const char* home = std::getenv("HOME"))
    login.environment.push_back("HOME=" + std::string(home));  // lets Postgres find .pgpass
  const auto begin = uri.find("://");
  const auto at = uri.find('@');
  if (begin == std::string::npos || at == std::string::npos || uri.find('/', begin + 3) < at) return login;
  const auto colon = uri.find(':', begin + 3);
  if (colon == std::string::npos || colon > at) return login;
  login.environment.push_back("PGPASSWORD=" + percent_decode(uri.substr(colon + 1, at - colon - 1)).value_or(""));
  login.uri.erase(colon, at - colon);
  return login;
}

Status run_program(std::vector<std::string> argv, const Login& login) {
  const std::string name = argv.front();
  Command command;
  command.argv = std::move(argv);
  command.environment = login.environment;
  ASSIGN_OR_RETURN(const Finished finished, run_to_end(std::move(command)));
  if (finished.exit_status == 0) return success();
  return Error(Errc::system_error,
               name + " failed (exit " + std::to_string(finished.exit_status) + "): " + finished.output);
}

DumpedDatabase read_contents(pqxx::transaction_base& transaction) {
  DumpedDatabase found;
  for (const pqxx::row& row : transaction.exec(logs_sql)) {
    found.logs.push_back(
        {static_cast<std::int16_t>(integer_of(row[0])), uuid_of(row[1]), integer_of(row[2]), text_of(row[3]) == "t"});
  }
  for (const pqxx::row& row : transaction.exec(roles_sql))
    found.roles.push_back({text_of(row[0]), text_of(row[1]) == "t"});
  for (const pqxx::row& row : transaction.exec(files_sql)) {
    found.files.push_back({text_of(row[0]), text_of(row[1]), integer_of(row[2])});
  }
  return found;
}

Status make_roles(Connection& connection, const std::vector<DumpedRole>& roles) {
  return guarded(connection, "making the database's roles (docs/runbook.md, roles)", [&] {
    pqxx::work work(*connection.impl().link);
    for (const DumpedRole& role : roles) {
      const std::string name = work.quote_name(role.name);
      if (work.exec_params("SELECT FROM pg_roles WHERE rolname = $1", role.name).empty()) {
        work.exec("CREATE ROLE " + name + " NOLOGIN" + (role.bypasses_rls ? " BYPASSRLS" : ""));
      }
      if (text_of(work.exec_params("SELECT pg_has_role($1, 'MEMBER')", role.name)[0][0]) != "t") {
        work.exec("GRANT " + name + " TO CURRENT_USER");
      }
    }
    work.commit();
    return Done{};
  });
}

}  // namespace

Result<DumpedDatabase> dump_database(const std::string& uri, const std::string& programs, const std::string& folder) {
  Connection connection(uri, DatabaseRole::login);
  RETURN_IF_ERROR(connection.ensure_open());
  const Login login = login_of(uri);
  Status dumped = success();
  ASSIGN_OR_RETURN(
      auto found, once(connection, "reading what is to be dumped", [&] {
        pqxx::nontransaction(*connection.impl().link)
            .exec("SET idle_in_transaction_session_timeout = 0; SET statement_timeout = 0");
        pqxx::transaction<pqxx::isolation_level::repeatable_read, pqxx::read_only> frozen(*connection.impl().link);
        const std::string moment = text_of(frozen.exec("SELECT pg_export_snapshot()")[0][0]);
        DumpedDatabase contents = read_contents(frozen);
        dumped = run_program({programs + "/pg_dump", "--format=directory", "--compress=1", "--snapshot=" + moment,
                              "--no-password", "--file=" + folder, "--dbname=" + login.uri},
                             login);
        return contents;
      }));
  RETURN_IF_ERROR(std::move(dumped));
  return found;
}

Result<bool> erased_since(const std::string& uri, const std::vector<DumpedLog>& logs) {
  Connection connection(uri, DatabaseRole::login);
  for (const DumpedLog& log : logs) {
    ASSIGN_OR_RETURN(
        const bool erased, guarded(connection, "looking for erasures", [&] {
          return !query(
                      connection, "erased_since",
                      "SELECT FROM event WHERE log_no = $1 AND seq >= $2 AND type IN ('event.redacted', 'artifact.redacted') LIMIT 1",
                      Params().integer(log.log_no).integer(log.size))
                      .empty();
        }));
    if (erased) return true;
  }
  return false;
}

Result<bool> holds_a_log(const std::string& uri) {
  Connection connection(uri, DatabaseRole::login);
  return guarded(connection, "looking at the database", [&] {
    return text_of(query(connection, "holds_a_log", "SELECT to_regclass('public.schema_migration') IS NOT NULL",
                         Params())[0][0]) == "t";
  });
}

Status restore_database(const std::string& uri, const std::string& programs, const std::string& folder,
                        const std::vector<DumpedRole>& roles) {
  ASSIGN_OR_RETURN(const bool taken, holds_a_log(uri));
  if (taken) return Error(Errc::conflict, "this database holds a log already. A restore requires an empty database");
  Connection connection(uri, DatabaseRole::login);
  RETURN_IF_ERROR(make_roles(connection, roles));
  const Login login = login_of(uri);
  return run_program({programs + "/pg_restore", "--exit-on-error", "--no-password", "--dbname=" + login.uri, folder},
                     login);
}

}  // namespace muniment::store
