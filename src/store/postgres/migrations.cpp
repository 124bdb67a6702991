// Implements migrations.hpp.
#include "store/postgres/migrations.hpp"

#include <algorithm>
#include <map>

#include "base/crypto/sha256.hpp"
#include "store/read/pq.hpp"

namespace muniment::store {

namespace {

// Key in the number space "muni" (append_connection.cpp); logs use the numbers from 1 on.
constexpr const char* take_turn = "SELECT pg_advisory_lock(1836412521, 0)";
constexpr const char* end_turn = "SELECT pg_advisory_unlock(1836412521, 0)";

constexpr const char* remember_table =
    "CREATE TABLE IF NOT EXISTS schema_migration ("
    " number integer PRIMARY KEY CHECK (number > 0),"
    " name text NOT NULL CHECK (octet_length(name) <= 256),"
    " sha256 text NOT NULL CHECK (sha256 ~ '^[0-9a-f]{64}$'),"
    " applied_at timestamptz NOT NULL DEFAULT now())";

struct Applied {
  std::string name;
  std::string hash;
};

std::map<int, Applied> read_applied(pqxx::connection& link) {
  pqxx::nontransaction transaction(link);
  std::map<int, Applied> applied;
  for (const pqxx::row& row : transaction.exec("SELECT number, name, sha256 FROM schema_migration ORDER BY number")) {
    applied[static_cast<int>(integer_of(row[0]))] = {text_of(row[1]), text_of(row[2])};
  }
  return applied;
}

std::string stem(const std::string& name) { return name.substr(0, name.rfind('.')); }

// Checks that the applied migrations match these files without a gap.
Status fits(const std::map<int, Applied>& applied, const std::vector<Migration>& migrations) {
  const int newest_known = migrations.empty() ? 0 : migrations.back().number;
  const int newest_applied = applied.empty() ? 0 : applied.rbegin()->first;
  if (newest_applied > newest_known) {
    return Error(Errc::conflict, "this data directory is of a newer Muniment (migration " +
                                     stem(applied.rbegin()->second.name) + "); this daemon knows migrations up to " +
                                     (migrations.empty() ? "none" : stem(migrations.back().name)) +
                                     ": install the newer Muniment again (this one is " MUNIMENT_VERSION ").");
  }
  for (const Migration& migration : migrations) {
    const auto found = applied.find(migration.number);
    if (found == applied.end()) {
      if (migration.number > newest_applied) continue;
      return Error(Errc::conflict, "migration " + migration.name + " was never applied, but " +
                                       applied.rbegin()->second.name + " was: give it a number after that one.");
    }
    const std::string hash = to_hex(sha256(migration.sql));
    if (hash == found->second.hash) continue;
    return Error(Errc::conflict, "migration " + migration.name + " was changed after it was applied (sha256 " + hash +
                                     " ≠ " + found->second.hash +
                                     "); restore the file, and put the change into a new one.");
  }
  return success();
}

// After 0005_roles.sql the objects that a migration creates belong to the owner role.
void become_owner(pqxx::work& transaction) {
  const bool owned = !transaction.exec("SELECT to_regproc('public.muniment_role')")[0][0].is_null();
  if (owned) transaction.exec("SELECT set_config('role', muniment_role('owner'), true)");
}

void apply(pqxx::connection& link, const Migration& migration) {
  pqxx::work transaction(link);
  transaction.exec("SET LOCAL statement_timeout = 0");  // may take long on a large log
  become_owner(transaction);
  transaction.exec(migration.sql);
  transaction.exec_params("INSERT INTO schema_migration (number, name, sha256) VALUES ($1, $2, $3)", migration.number,
                          migration.name, to_hex(sha256(migration.sql)));
  transaction.commit();
}

Status apply_missing(Connection& connection, const std::vector<Migration>& migrations) {
  pqxx::connection& link = *connection.impl().link;
  ASSIGN_OR_RETURN(const auto applied, once(connection, "reading the applied migrations", [&] {
                     pqxx::nontransaction(link).exec(remember_table);
                     return read_applied(link);
                   }));
  RETURN_IF_ERROR(fits(applied, migrations));
  for (const Migration& migration : migrations) {
    if (applied.contains(migration.number)) continue;
    RETURN_IF_ERROR(once(connection, "applying migration " + migration.name, [&] {
      apply(link, migration);
      return Done{};
    }));
  }
  return success();
}

}  // namespace

Status migrate(Connection& connection, const std::vector<Migration>& migrations) {
  RETURN_IF_ERROR(guarded(connection, "waiting for the migrations' turn", [&] {
    pqxx::nontransaction(*connection.impl().link).exec(take_turn);
    return Done{};
  }));
  Status applied = apply_missing(connection, migrations);
  // A broken session has released the lock.
  Status released = once(connection, "ending the migrations", [&] {
    pqxx::nontransaction(*connection.impl().link).exec(end_turn);
    return Done{};
  });
  return applied ? released : applied;
}

}  // namespace muniment::store
