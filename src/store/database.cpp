// See database.hpp.
#include "store/database.hpp"

#include "store/postgres_cluster.hpp"
#include "store/pq.hpp"

namespace muniment::store {

namespace {

std::string what_could_happen(std::string_view setting) {
  if (setting == "full_page_writes") return "a power cut could leave half-written pages behind";
  return "an acknowledged event could be lost in a power cut";
}

// ALTER SYSTEM mends the server's own setting, but not one that a database or a role was given.
std::string mending(const std::string& setting, const std::string& source,
                    const std::string& database, const std::string& user) {
  if (source == "database") return "ALTER DATABASE \"" + database + "\" RESET " + setting;
  if (source == "user") return "ALTER ROLE \"" + user + "\" RESET " + setting;
  if (source == "database user") {
    return "ALTER ROLE \"" + user + "\" IN DATABASE \"" + database + "\" RESET " + setting;
  }
  return "ALTER SYSTEM SET " + setting + " = on' -c 'SELECT pg_reload_conf()";
}

Status judged(const pqxx::result& rows, const std::string& uri) {
  for (const pqxx::row& row : rows) {
    const std::string setting = text_of(row[0]);
    const std::string value = text_of(row[1]);
    if (setting == "server_version_num") {
      if (integer_of(row[1]) >= postgres_major_min * 10'000) continue;
      return Error(Errc::conflict, "the server is Postgres " + std::to_string(integer_of(row[1]) / 10'000) +
                                       "; Muniment needs " + std::to_string(postgres_major_min) +
                                       " or newer. Upgrade it, or set database to another one.");
    }
    if (value != "off") continue;
    return Error(Errc::conflict,
                 setting + " is off on this Postgres: " + what_could_happen(setting) +
                     ". Mend it: psql '" + uri + "' -c '" +
                     mending(setting, text_of(row[2]), text_of(row[3]), text_of(row[4])) + "'");
  }
  return success();
}

}  // namespace

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

Status check_settings(Connection& connection) {
  ASSIGN_OR_RETURN(const pqxx::result rows, guarded(connection, "reading the server's settings", [&] {
    return query(connection, "server_settings",
                 "SELECT name, setting, source, current_database(), current_user FROM pg_settings "
                 "WHERE name IN ('server_version_num', 'fsync', 'full_page_writes', "
                 "'synchronous_commit') ORDER BY name <> 'server_version_num', name",
                 Params());
  }));
  return judged(rows, connection.impl().uri);
}

Status check_roles(Connection& connection) {
  ASSIGN_OR_RETURN(const pqxx::result rows, guarded(connection, "reading the database's roles", [&] {
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
    return Error(Errc::denied, "the tables of this database are not owned by a role that ends in _owner, or there is no "
                               "such role _writer: it was restored without its owners. See docs/runbook.md (roles)");
  }
  if (!holds(3)) {
    return Error(Errc::denied, "the database user may not act as the writer. Let an administrator run: GRANT " + writer +
                                   " TO " + text_of(rows[0][2]) + ". See docs/runbook.md (roles)");
  }
  if (!holds(4)) {
    return Error(Errc::denied, "row-level security stands in the writer's way. Let an administrator run: ALTER ROLE " +
                                   writer + " BYPASSRLS. See docs/runbook.md (roles)");
  }
  return success();
}

}  // namespace muniment::store
