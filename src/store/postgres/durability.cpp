// Implements durability.hpp.
#include "store/postgres/durability.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/config/config.hpp"

namespace muniment::store {
namespace {

std::string_view value_of(const std::vector<ServerSetting>& settings, std::string_view name) {
  const auto found = std::ranges::find(settings, name, &ServerSetting::name);
  return found == settings.end() ? std::string_view() : std::string_view(found->value);
}

std::int64_t number_in_front(std::string_view text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

void skip_spaces(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\n\r"), text.size()));
}

std::string_view what_could_happen(std::string_view setting) {
  if (setting == "full_page_writes") return "a power failure could leave half-written pages behind";
  return "an acknowledged event could be lost in a power failure";
}

// ALTER SYSTEM fixes the server's own setting, but not one that was set for a database, a role or this connection.
std::string mending(const ServerSetting& setting, const std::string& psql, const std::string& database,
                    const std::string& user) {
  const std::string reset = " RESET " + setting.name + "'";
  if (setting.source == "client")
    return "remove " + setting.name + " from PGOPTIONS and from the options of the setting database";
  if (setting.source == "database") return psql + "'ALTER DATABASE \"" + database + "\"" + reset;
  if (setting.source == "user") return psql + "'ALTER ROLE \"" + user + "\"" + reset;
  if (setting.source == "database user")
    return psql + "'ALTER ROLE \"" + user + "\" IN DATABASE \"" + database + "\"" + reset;
  const std::string_view right = setting.name == read_only_setting ? "off" : "on";
  return fmt::format("{}'ALTER SYSTEM SET {} = {}' -c 'SELECT pg_reload_conf()'", psql, setting.name, right);
}

// Quotes for a shell, because a foreign trigger's name must not inject commands that an operator runs.
std::string in_quotes(std::string_view words) {
  std::string out = "'";
  for (const char c : words) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// A trigger on a partitioned table precedes its copies on the partitions.
std::optional<Unsafe> find_interference(const std::vector<ServerSetting>& settings, const std::string& psql) {
  for (const ServerSetting& found : settings) {
    if (found.name != "insert_trigger" && found.name != "insert_rule") continue;
    return Unsafe{fmt::format("the {} {} acts on appended rows: stored events may differ from acknowledged ones",
                              found.name.substr(7), found.value),
                  psql + in_quotes(found.source)};
  }
  return std::nullopt;
}

// Returns the reason why the named standbys cannot confirm a commit.
std::optional<Unsafe> find_missing(const std::vector<ServerSetting>& settings, const Standbys& standbys,
                                   const std::string& psql, const std::string& user) {
  if (value_of(settings, "sees_standbys") != "true") {
    return Unsafe{"standbys is set, but the database's user may not read the names of the connected standbys",
                  fmt::format("{}'GRANT pg_read_all_stats TO \"{}\"'", psql, user)};
  }
  std::vector<std::string> connected;
  for (const std::string& name : standbys.names) {
    const bool there = std::ranges::any_of(
        settings, [&](const ServerSetting& row) { return row.name == "standby" && row.value == name; });
    if (there) connected.push_back(name);
  }
  if (std::ssize(connected) >= standbys.required) return std::nullopt;
  return Unsafe{fmt::format("standbys requires {} of {}, but {} connected: no commit can be confirmed",
                            standbys.required, fmt::join(standbys.names, ", "),
                            connected.empty() ? "none is" : fmt::format("only {} is", fmt::join(connected, ", "))),
                psql + "'TABLE pg_stat_replication'"};
}

}  // namespace

std::int64_t standbys_asked_for(std::string_view names) {
  skip_spaces(names);
  if (names.empty()) return 0;
  for (const std::string_view method : {"ANY", "FIRST"}) {
    const bool is_method =
        names.size() > method.size() &&
        std::ranges::equal(names.substr(0, method.size()), method, [](char a, char b) { return (a & ~0x20) == b; }) &&
        std::string_view(" \t0123456789").find(names[method.size()]) != std::string_view::npos;
    if (!is_method) continue;
    names.remove_prefix(method.size());
    skip_spaces(names);
  }
  // A number is a count if names in parentheses follow; "a, b" requires the first connected standby.
  const bool counted = names.find('(') != std::string_view::npos && names.find('(') < names.find('"');
  return counted ? number_in_front(names) : 1;
}

std::optional<Unsafe> find_unsafe(const std::vector<ServerSetting>& settings, const Standbys& standbys,
                                  const std::string& uri, const std::string& database, const std::string& user) {
  const std::string psql = fmt::format("psql '{}' -c ", without_password(uri));
  for (const ServerSetting& setting : settings) {
    if (setting.name == read_only_setting && setting.value == "on")
      return Unsafe{fmt::format("{} is on for this connection: Postgres refuses every write", setting.name),
                    mending(setting, psql, database, user)};
    if (setting.value != "off" || std::ranges::find(durable_settings, setting.name) == durable_settings.end()) continue;
    return Unsafe{fmt::format("{} is off on this Postgres: {}", setting.name, what_could_happen(setting.name)),
                  mending(setting, psql, database, user)};
  }
  if (auto interference = find_interference(settings, psql)) return interference;
  const std::int64_t required_standbys = standbys.required;
  if (required_standbys == 0) return std::nullopt;
  const std::string_view names = value_of(settings, "synchronous_standby_names");
  if (const std::int64_t asked = standbys_asked_for(names); asked < required_standbys) {
    return Unsafe{
        fmt::format(
            "required_standbys is {}, but Postgres waits for {}: an acknowledged event could be lost in a failover",
            required_standbys, asked),
        psql + fmt::format("'ALTER SYSTEM SET synchronous_standby_names = \"ANY {} (…)\"' -c 'SELECT pg_reload_conf()'",
                           required_standbys)};
  }
  if (!standbys.names.empty()) return find_missing(settings, standbys, psql, user);
  if (const std::int64_t there = number_in_front(value_of(settings, "standbys")); there < required_standbys) {
    return Unsafe{
        fmt::format(
            "required_standbys is {}, but only {} synchronous standbys are connected: no commit can be confirmed",
            required_standbys, there),
        psql + "'TABLE pg_stat_replication'"};
  }
  return std::nullopt;
}

std::string unsafe_setting(const std::vector<ServerSetting>& settings, const Standbys& standbys, const std::string& uri,
                           const std::string& database, const std::string& user) {
  const auto found = find_unsafe(settings, standbys, uri, database, user);
  return found ? found->why + ". To fix this: " + found->fix : std::string();
}

}  // namespace muniment::store
