// Checks that acknowledged events survive: the settings of Postgres that make commits durable, the required standbys,
// and that no trigger or rule acts on appended rows. One statement queries all of it, at start and on the append
// connection, and one function judges it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config/standbys.hpp"

namespace muniment::store {

// Setting under which Postgres refuses every write.
inline constexpr std::string_view read_only_setting = "default_transaction_read_only";

// Settings that can lose acknowledged events if they are off.
inline constexpr std::array<std::string_view, 3> durable_settings = {"fsync", "full_page_writes", "synchronous_commit"};

struct ServerSetting {
  std::string name;
  // Value in a session that sets nothing itself; for a trigger or rule: its name and its table's
  std::string value;
  std::string source;  // as in pg_settings; for a trigger or rule: the statement that removes it
};

// Returns rows of ServerSetting, followed by the names of the database and the user. It also counts the standbys: a
// user without the right to see their state sees that they exist, and a commit that waits for them then decides. A
// receiver that replays nothing (pg_receivewal) is no standby. It
// finds triggers and rules on inserts into the log's tables, which in Muniment have none, because a trigger could
// delete a row after it was counted. It reads only catalogs, so it never waits for a lock on a partition.
inline constexpr std::string_view durability_sql =
    "WITH RECURSIVE log_table(relation) AS ("
    "SELECT to_regclass('public.' || name)::oid FROM unnest(ARRAY['event', 'artifact', 'manifest', 'snapshot', 'claim', 'evidence', 'evidence_link', "
    "'task_change', 'task_evidence', 'checkpoint', 'checkpoint_note']) AS name UNION SELECT inhrelid FROM pg_inherits JOIN log_table ON inhparent = relation) "
    "SELECT name, reset_val, source, current_database(), session_user FROM pg_settings "
    "WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'synchronous_standby_names', 'default_transaction_read_only') "
    "UNION ALL SELECT 'standbys', count(*)::text, '', current_database(), session_user FROM pg_stat_replication "
    "WHERE coalesce(sync_state, 'sync') IN ('sync', 'quorum') AND (replay_lsn IS NOT NULL OR sync_state IS NULL) "
    "UNION ALL SELECT 'standby', application_name, '', current_database(), session_user FROM pg_stat_replication WHERE replay_lsn IS NOT NULL "
    "UNION ALL SELECT 'sees_standbys', pg_has_role('pg_read_all_stats', 'USAGE')::text, '', current_database(), session_user "
    "UNION ALL SELECT 'insert_trigger', format('%I on %I', tgname, relname), format('DROP TRIGGER %I ON %I', tgname, relname), current_database(), session_user "
    "FROM pg_trigger JOIN log_table ON tgrelid = relation JOIN pg_class c ON c.oid = relation WHERE NOT tgisinternal AND tgtype & 4 <> 0 AND tgenabled <> 'D' "
    "UNION ALL SELECT 'insert_rule', format('%I on %I', rulename, relname), format('DROP RULE %I ON %I', rulename, relname), current_database(), session_user "
    "FROM pg_rewrite JOIN log_table ON ev_class = relation JOIN pg_class c ON c.oid = relation WHERE ev_type = '3' AND ev_enabled <> 'D' "
    "ORDER BY 1, 2";

// Reason why events could not be stored or, once acknowledged, be lost, with the name of the setting or trigger, and
// the command that fixes it.
struct Unsafe {
  std::string why;
  std::string fix;
};
// Returns nullopt if acknowledged events cannot be lost.
std::optional<Unsafe> find_unsafe(const std::vector<ServerSetting>& settings, const Standbys& standbys,
                                  const std::string& uri, const std::string& database, const std::string& user);
// Returns the reason of find_unsafe in one sentence; empty if there is none.
std::string unsafe_setting(const std::vector<ServerSetting>& settings, const Standbys& standbys, const std::string& uri,
                           const std::string& database, const std::string& user);

// Returns the number of standbys that must confirm a commit under this value of synchronous_standby_names.
std::int64_t standbys_asked_for(std::string_view synchronous_standby_names);

}  // namespace muniment::store
