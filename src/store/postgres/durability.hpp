// What an acknowledgement rests on: the settings by which Postgres keeps what it has committed, the standbys that have
// it too, and that nobody acts on what is appended while it is. Asked in one statement, at start and on the append
// connection, and judged in one place.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::store {

// Settings that lose what is acknowledged where they are off.
inline constexpr std::array<std::string_view, 3> durable_settings = {"fsync", "full_page_writes", "synchronous_commit"};

struct ServerSetting {
  std::string name;
  std::string value;   // what a session gets that sets nothing itself; of a trigger or rule: its name and its table's
  std::string source;  // as in pg_settings; of a trigger or rule: the statement that removes it
};

// Rows of ServerSetting, then the database's and the user's name. Beside settings it counts the standbys: who may not
// see what a standby is for sees that it is there, and then a commit that waits for it decides. And it finds what acts
// on rows that are inserted into the log's tables, which nothing of Muniment's does: a trigger may remove a row again
// in the transaction that has counted it. Only catalogs are read, so that nobody's lock on a partition is waited for.
inline constexpr std::string_view durability_sql =
    "WITH RECURSIVE log_table(relation) AS ("
    "SELECT to_regclass('public.' || name)::oid FROM unnest(ARRAY['event', 'artifact', 'manifest', 'snapshot', 'claim', 'evidence', 'evidence_link', "
    "'task_change', 'task_evidence', 'checkpoint', 'checkpoint_note']) AS name UNION SELECT inhrelid FROM pg_inherits JOIN log_table ON inhparent = relation) "
    "SELECT name, reset_val, source, current_database(), session_user FROM pg_settings "
    "WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'synchronous_standby_names') "
    "UNION ALL SELECT 'standbys', count(*)::text, '', current_database(), session_user FROM pg_stat_replication "
    "WHERE coalesce(sync_state, 'sync') IN ('sync', 'quorum') "
    "UNION ALL SELECT 'insert_trigger', format('%I on %I', tgname, relname), format('DROP TRIGGER %I ON %I', tgname, relname), current_database(), session_user "
    "FROM pg_trigger JOIN log_table ON tgrelid = relation JOIN pg_class c ON c.oid = relation WHERE NOT tgisinternal AND tgtype & 4 <> 0 AND tgenabled <> 'D' "
    "UNION ALL SELECT 'insert_rule', format('%I on %I', rulename, relname), format('DROP RULE %I ON %I', rulename, relname), current_database(), session_user "
    "FROM pg_rewrite JOIN log_table ON ev_class = relation JOIN pg_class c ON c.oid = relation WHERE ev_type = '3' AND ev_enabled <> 'D' "
    "ORDER BY 1, 2";

// Why what is acknowledged could be lost, with the name of the setting or trigger, and the command that mends it.
struct Unsafe {
  std::string why;
  std::string mend;
};
// nullopt: it could not.
std::optional<Unsafe> find_unsafe(const std::vector<ServerSetting>& settings, std::int64_t required_standbys,
                                  const std::string& uri, const std::string& database, const std::string& user);
// The same in one sentence; empty: it could not.
std::string unsafe_setting(const std::vector<ServerSetting>& settings, std::int64_t required_standbys,
                           const std::string& uri, const std::string& database, const std::string& user);

// How many standbys have to confirm a commit by this synchronous_standby_names.
std::int64_t standbys_asked_for(std::string_view synchronous_standby_names);

}  // namespace muniment::store
