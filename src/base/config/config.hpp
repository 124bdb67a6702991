// Configuration: one struct, and one table that says of each key its type, default, unit and
// meaning. A value comes from a flag, else from the environment (MUNIMENT_<KEY>), else from the
// file (<data>/muniment.toml, or --config), else from the table; `muniment config print` shows
// which. Where no place is named and the user has no instance, the file is the machine's,
// /etc/muniment/muniment.toml, if the user may read it: then a service is meant. The file's format is TOML; only
// config_file.cpp knows.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.hpp"

namespace muniment {

struct Config {
  std::string data;
  std::string database;  // empty: the private Postgres
  std::string socket;
  std::string origin;  // of the signed checkpoints
  std::int64_t checkpoint_ms = 0;
  std::string witnesses;  // who else keeps them
  std::int64_t artifact_bytes_max = 0;
  std::int64_t disk_reserve_bytes = 0;
  std::int64_t disk_reserve_percent = 0;
  std::int64_t snapshot_events = 0;
  std::int64_t snapshot_seconds = 0;
  std::int64_t partition_bits = 0;
  std::int64_t workers = 0;
  std::int64_t search_threads = 0;
  std::int64_t query_cache_bytes = 0;
  std::string reporter_listen;  // of the private Postgres, for reporters; empty: its Unix socket alone
  std::string reporter_password_file;
  std::string reporter_clients;  // networks that it may be reached from
  std::string redis;             // of the shared cache; empty: there is none
  std::string redis_password_file;
  std::int64_t redis_seconds = 0;
  std::string use_lite;   // folder of the embedder's weights
  std::string embed_url;  // of an embedding server; empty: there is none
  std::string embed_api;
  std::string embed_model;
  std::string embed_key_file;
  std::string embed_query_prefix;
  std::int64_t embed_dimension = 0;  // 0: the server is asked
  std::int64_t embed_timeout_ms = 0;
  std::vector<std::string> expansion_hook;  // a command and its arguments
  std::vector<std::string> rerank_hook;
  std::int64_t hook_ms = 0;
  std::string rerank_url;
  std::string rerank_key_file;
  std::int64_t rerank_ms = 0;
  bool index_runs = false;  // of runs that do not say it themselves
  std::string http_listen;  // of MCP over HTTP; empty: nowhere
  std::string http_token_file;
  std::string http_certificate_file;
  std::string http_key_file;
  std::vector<std::string> http_hosts;  // names that clients may call it by
  std::vector<std::string> mcp_toolsets;
  bool mcp_session_runs = false;  // of the sessions that do not say it themselves
  std::string completion_policy;  // a TOML file; empty: the default policy for all tasks
  std::int64_t upload_seconds = 0;
  std::int64_t commit_deadline_ms = 0;
  std::int64_t required_standbys = 0;
  std::string log_level;
  std::string log_format;
  std::vector<std::int64_t> allowed_uids;  // beside root and the daemon's own
  std::string allowed_group;               // a name; empty: none
};

// Which member of Config a key sets; its type is the key's type.
using ConfigField = std::variant<std::string Config::*, std::int64_t Config::*, bool Config::*,
                                 std::vector<std::int64_t> Config::*, std::vector<std::string> Config::*>;

struct ConfigKey {
  std::string_view key;
  ConfigField field;
  std::string_view fallback;  // as text; empty where it depends on the place
  std::string_view unit;      // bytes, seconds, …, or empty
  std::int64_t min = 0;       // of a number, inclusive
  std::int64_t max = 0;
  std::string_view text;  // one sentence
};

std::span<const ConfigKey> config_table();
std::string_view type_of(const ConfigKey& key);  // "text", "number", "yes or no", "numbers", "texts"

enum class ConfigSource : std::uint8_t { fallback, file, environment, flag };

// Where the value of config_table()[i] came from: "default", "/x/muniment.toml", "MUNIMENT_DATA",
// "--data".
struct ConfigOrigin {
  ConfigSource source = ConfigSource::fallback;
  std::string where = "default";
};

struct LoadedConfig {
  Config values;
  std::vector<ConfigOrigin> origins;  // one a row of the table
  std::string file;                   // the file that was read; empty: there is none
  std::string unread;                 // one that this user may not read, where `may_go_without`; `file` is empty then
  std::vector<Error> problems;        // all of them; the value before it stays in force
};

// What can be set from outside, so that tests need neither a home folder nor setenv.
struct ConfigInputs {
  std::vector<std::pair<std::string, std::string>> flags;  // key, value as text
  std::string file;                                        // --config; empty: <data>/muniment.toml
  std::optional<std::string> system_file;                  // of the machine; empty: /etc/muniment/muniment.toml
  std::function<const char*(const char*)> environment;     // empty: getenv
  std::optional<bool> is_root;                             // empty: the effective uid decides
  // The command line's: a file that nobody named, and that its user may not read, is left out. A daemon without it
  // would be another one.
  bool may_go_without = false;
};

// Everything, with its problems collected: for `muniment config print` and `check`.
LoadedConfig load_config(const ConfigInputs& inputs);
// The values, or the first problem.
Result<Config> read_config(const ConfigInputs& inputs);

// A value as `config print` shows it: a password in a URI is hidden.
std::string shown_value(const Config& config, const ConfigKey& key);

// A database URI or connection string with its password hidden, if it has one.
std::string without_password(std::string uri);

// Whether it is a list of texts, which is written as a JSON array wherever values are texts: ["/bin/cat","-u"].
bool is_list_of_texts(std::string_view key);

// Splits the text of a TOML file into keys and values as text, calling `take` for each. Errors:
// invalid_argument, with line and column; not_found when `path` cannot be opened.
Status read_config_file(const std::string& path,
                        const std::function<void(std::string_view key, Result<std::string>)>& take);

}  // namespace muniment
