// What an acknowledgement rests on: the settings by which Postgres keeps what it has committed, and the standbys that
// have it too. Asked in one statement, at start and on the append connection, and judged in one place.
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
  std::string value;     // what a session gets that sets nothing itself
  std::string source;    // as in pg_settings
};

// Rows of ServerSetting, then the database's and the user's name. Beside settings it counts the standbys: who may not see
// what a standby is for sees that it is there, and then a commit that waits for it decides.
inline constexpr std::string_view durability_sql =
    "SELECT name, reset_val, source, current_database(), session_user FROM pg_settings "
    "WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'synchronous_standby_names') "
    "UNION ALL SELECT 'standbys', count(*)::text, '', current_database(), session_user FROM pg_stat_replication "
    "WHERE coalesce(sync_state, 'sync') IN ('sync', 'quorum') ORDER BY 1";

// Why what is acknowledged could be lost, with the setting's name, and the command that mends it.
struct Unsafe {
  std::string why;
  std::string mend;
};
// nullopt: it could not.
std::optional<Unsafe> find_unsafe(const std::vector<ServerSetting>& settings, std::int64_t required_standbys, const std::string& uri,
                                  const std::string& database, const std::string& user);
// The same in one sentence; empty: it could not.
std::string unsafe_setting(const std::vector<ServerSetting>& settings, std::int64_t required_standbys, const std::string& uri,
                           const std::string& database, const std::string& user);

// How many standbys have to confirm a commit by this synchronous_standby_names.
std::int64_t standbys_asked_for(std::string_view synchronous_standby_names);

}  // namespace muniment::store
