// Implements database.hpp.
#include "store/postgres/database.hpp"

#include "store/postgres/durability.hpp"
#include "store/postgres/postgres_cluster.hpp"
#include "store/read/pq.hpp"

namespace muniment::store {

Status make_database(const std::string& server_uri, const std::string& name) {
  Connection connection(server_uri, DatabaseRole::login);
  ASSIGN_OR_RETURN(const bool there, guarded(connection, "looking for the database", [&] {
                     return !query(connection, "database_named", "SELECT 1 FROM pg_database WHERE datname = $1",
                                   Params().text(name))
                                 .empty();
                   }));
  if (there) return success();
  return guarded(connection, "making the database " + name, [&] {
    pqxx::nontransaction transaction(*connection.impl().link);
    transaction.exec("CREATE DATABASE " + connection.impl().link->quote_name(name) +
                     " TEMPLATE template0 ENCODING 'UTF8'");
    return Done{};
  });
}

namespace {

constexpr int pool_probes = 4;  // a pooler may hand out its sessions in turn

std::int64_t backend_of(pqxx::transaction_base& transaction) {
  return integer_of(transaction.exec("SELECT pg_backend_pid()")[0][0]);
}

// Returns whether transactions of one connection may run in different sessions. A pooler announces a process id of its
// own; only then, a transaction of a second connection stays open to see whether it has taken the first one's session.
Result<bool> shares_sessions(Connection& connection) {
  constexpr std::string_view doing = "looking for a connection pooler";
  std::int64_t own = 0;
  ASSIGN_OR_RETURN(const bool pooled, guarded(connection, doing, [&] {
                     pqxx::nontransaction transaction(*connection.impl().link);
                     own = backend_of(transaction);
                     return own != connection.impl().link->backendpid();
                   }));
  if (!pooled) return false;
  Connection other(connection.impl().uri, DatabaseRole::login);
  for (int probe = 0; probe < pool_probes; ++probe) {
    ASSIGN_OR_RETURN(const bool shared, guarded(other, doing, [&] {
                       pqxx::work held(*other.impl().link);
                       const std::int64_t taken = backend_of(held);
                       pqxx::nontransaction transaction(*connection.impl().link);
                       return taken == own || backend_of(transaction) != own;
                     }));
    if (shared) return true;
  }
  return false;
}

}  // namespace

Status check_server(Connection& connection) {
  ASSIGN_OR_RETURN(const bool shared, shares_sessions(connection));
  if (shared) {
    return Error(
        Errc::conflict,
        "a connection pooler runs the transactions of one connection in different sessions, and the daemon needs "
        "its session's locks, settings and prepared statements. To fix this: pool_mode = session in PgBouncer for "
        "this database, or a direct connection to Postgres");
  }
  std::int64_t version = 0;
  std::string encoding;
  bool standby = false;
  RETURN_IF_ERROR(guarded(connection, "reading the server's version", [&] {
    const pqxx::result rows = query(connection, "server_version",
                                    "SELECT current_setting('server_version_num'), current_setting('server_encoding'), "
                                    "pg_is_in_recovery()",
                                    Params());
    version = integer_of(rows[0][0]);
    encoding = text_of(rows[0][1]);
    standby = text_of(rows[0][2]) == "t";
    return Done{};
  }));
  if (version < postgres_major_min * 10'000) {
    return Error(Errc::conflict, "the server is Postgres " + std::to_string(version / 10'000) + "; Muniment needs " +
                                     std::to_string(postgres_major_min) +
                                     " or newer. Upgrade it, or set database to another one.");
  }
  if (encoding != "UTF8") {
    return Error(Errc::conflict, "the database has the encoding " + encoding +
                                     "; create it with UTF8: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0");
  }
  if (standby) {
    return Error(Errc::conflict, "the server is a standby, which accepts no writes. Set database to the primary");
  }
  return success();
}

Result<std::optional<Unsafe>> read_unsafe(Connection& connection, const Standbys& standbys) {
  return guarded(connection, "reading the server's settings", [&] {
    const pqxx::result rows = query(connection, "server_settings", durability_sql, Params());
    std::vector<ServerSetting> settings;
    for (const pqxx::row& row : rows) settings.push_back({text_of(row[0]), text_of(row[1]), text_of(row[2])});
    return find_unsafe(settings, standbys, connection.impl().uri, text_of(rows[0][3]), text_of(rows[0][4]));
  });
}

Status check_settings(Connection& connection, const Standbys& standbys) {
  RETURN_IF_ERROR(check_server(connection));
  ASSIGN_OR_RETURN(const auto unsafe, read_unsafe(connection, standbys));
  return unsafe ? Status(Error(Errc::conflict, unsafe->why + ". To fix this: " + unsafe->fix)) : success();
}

Status check_roles(Connection& connection) {
  ASSIGN_OR_RETURN(
      const pqxx::result rows, guarded(connection, "reading the database's roles", [&] {
        return query(connection, "database_roles",
                     "SELECT coalesce(w.rolname, ''), quote_ident(muniment_role('writer')), quote_ident(session_user), "
                     "coalesce(pg_has_role(session_user, w.oid, 'MEMBER'), false), "
                     "coalesce(w.rolbypassrls, false) OR NOT e.relrowsecurity "
                     "FROM pg_class e LEFT JOIN pg_roles w ON w.rolname = muniment_role('writer') "
                     "AND w.oid <> e.relowner WHERE e.oid = 'public.event'::regclass",
                     Params());
      }));
  const auto holds = [&](int column) { return text_of(rows[0][column]) == "t"; };
  const std::string writer = text_of(rows[0][1]);
  if (text_of(rows[0][0]).empty()) {
    return Error(Errc::denied,
                 "the tables of this database are not owned by a role that ends in _owner, or there is no "
                 "such role _writer: it was restored without its owners. See docs/runbook.md (roles)");
  }
  if (!holds(3)) {
    return Error(Errc::denied,
                 "the database user is not a member of the writer role. An administrator must run: GRANT " + writer +
                     " TO " + text_of(rows[0][2]) + ". See docs/runbook.md (roles)");
  }
  if (!holds(4)) {
    return Error(Errc::denied, "row-level security blocks the writer. An administrator must run: ALTER ROLE " + writer +
                                   " BYPASSRLS. See docs/runbook.md (roles)");
  }
  return success();
}

}  // namespace muniment::store
