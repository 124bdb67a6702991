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

Result<std::optional<Unsafe>> read_unsafe(Connection& connection, std::int64_t required_standbys) {
  return guarded(connection, "reading the server's settings", [&] {
    const pqxx::result rows = query(connection, "server_settings", durability_sql, Params());
    std::vector<ServerSetting> settings;
    for (const pqxx::row& row : rows) settings.push_back({text_of(row[0]), text_of(row[1]), text_of(row[2])});
    return find_unsafe(settings, required_standbys, connection.impl().uri, text_of(rows[0][3]), text_of(rows[0][4]));
  });
}

Status check_settings(Connection& connection, std::int64_t required_standbys) {
  ASSIGN_OR_RETURN(const std::string too_old, guarded(connection, "reading the server's version", [&]() -> std::string {
                     const std::int64_t version = integer_of(query(
                         connection, "server_version", "SELECT current_setting('server_version_num')", Params())[0][0]);
                     if (version < postgres_major_min * 10'000) {
                       return "the server is Postgres " + std::to_string(version / 10'000) + "; Muniment needs " +
                              std::to_string(postgres_major_min) +
                              " or newer. Upgrade it, or set database to another one.";
                     }
                     return "";
                   }));
  if (!too_old.empty()) return Error(Errc::conflict, too_old);
  ASSIGN_OR_RETURN(const auto unsafe, read_unsafe(connection, required_standbys));
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
