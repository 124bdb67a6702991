#include "store/postgres/database_facts.hpp"

#include <algorithm>

#include "store/postgres/database.hpp"
#include "store/postgres/migrations.hpp"
#include "store/read/pq.hpp"

namespace muniment::store {
namespace {

// Reads the newest event: the log's partitions are ordered by seq.
constexpr std::string_view last_event_sql =
    "SELECT seq + 1, " MUNIMENT_MICROS("recorded_at") " FROM event WHERE log_no = $1 ORDER BY seq DESC LIMIT 1";

void compare_migrations(DatabaseFacts& facts, const pqxx::result& applied) {
  std::vector<Migration> ours = embedded_migrations();
  for (const pqxx::row& row : applied) {
    const auto known = std::ranges::find(ours, integer_of(row[0]), &Migration::number);
    if (known == ours.end()) {
      facts.unknown_migrations.push_back(text_of(row[1]));
      continue;
    }
    if (to_hex(sha256(known->sql)) != text_of(row[2])) facts.edited_migrations.push_back(known->name);
    ours.erase(known);
  }
  for (const Migration& migration : ours) facts.missing_migrations.push_back(migration.name);
}

}  // namespace

Result<DatabaseFacts> read_database_facts(Connection& connection, std::int16_t log_no, const Standbys& standbys) {
  RETURN_IF_ERROR(check_server(connection));
  ASSIGN_OR_RETURN(const auto unsafe, read_unsafe(connection, standbys));
  return guarded(connection, "looking at the database", [&] {
    DatabaseFacts facts;
    facts.unsafe = unsafe;
    const pqxx::result server = query(connection, "facts_server",
                                      "SELECT current_setting('server_version'), " MUNIMENT_MICROS("clock_timestamp()") ", "
                                      "(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'), "
                                      "current_setting('max_connections')::bigint, to_regclass('public.schema_migration') IS NOT NULL, "
                                      "to_regclass('public.event') IS NOT NULL",
                                      Params());
    facts.server_version = text_of(server[0][0]);
    facts.now = time_of(server[0][1]);
    facts.connections = integer_of(server[0][2]);
    facts.connections_max = integer_of(server[0][3]);
    if (text_of(server[0][4]) == "t") {
      compare_migrations(facts, query(connection, "facts_migrations",
                                      "SELECT number, name, sha256 FROM schema_migration ORDER BY number", Params()));
    }
    if (text_of(server[0][5]) != "t") return facts;
    const pqxx::result last = query(connection, "facts_last_event", last_event_sql, Params().integer(log_no));
    facts.has_log = true;
    if (last.empty()) return facts;
    facts.events = integer_of(last[0][0]);
    facts.last_recorded_at = time_of(last[0][1]);
    return facts;
  });
}

Result<std::vector<std::string>> paths_without_row(Connection& connection, const std::vector<std::string>& paths) {
  return guarded(connection, "looking for files that no event names", [&] {
    std::vector<std::string> unknown;
    for (
        const pqxx::row& row : query(
            connection, "facts_unknown_paths",
            "SELECT p.path FROM unnest($1::text[]) WITH ORDINALITY AS p(path, place) "
            "WHERE NOT EXISTS (SELECT FROM artifact a WHERE a.path = regexp_replace(p.path, '[.]pieces$', '')) ORDER BY p.place",
            Params().texts(paths))) {
      unknown.push_back(text_of(row[0]));
    }
    return unknown;
  });
}

}  // namespace muniment::store
