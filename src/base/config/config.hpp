// Defines the configuration: one struct, and one table with the type, default, unit and description of each key. A
// value comes from a flag, else from the environment (MUNIMENT_<KEY>), else from the file (<data>/muniment.toml, or
// --config), else from the table; `muniment config print` shows the source. If no folder is named and the user has no
// instance, the file is the machine's /etc/muniment/muniment.toml, if the user may read it, because a service is then
// meant. The format of the file is TOML, which only config_file.cpp parses.
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
  std::string origin;  // origin line of the signed checkpoints
  std::int64_t checkpoint_ms = 0;
  std::string witnesses;  // keepers of the signed checkpoints
  std::int64_t artifact_bytes_max = 0;
  std::int64_t disk_reserve_bytes = 0;
  std::int64_t disk_reserve_percent = 0;
  std::int64_t snapshot_events = 0;
  std::int64_t snapshot_seconds = 0;
  std::int64_t partition_bits = 0;
  std::int64_t workers = 0;
  std::int64_t search_threads = 0;
  std::int64_t query_cache_bytes = 0;
  std::string reporter_listen;  // TCP address of the private Postgres; empty: only its Unix socket
  std::string reporter_password_file;
  std::string reporter_clients;  // networks that may connect to it
  std::string redis;             // address of the shared cache; empty: none
  std::string redis_password_file;
  std::int64_t redis_seconds = 0;
  std::string encoder;    // name of the sentence encoder, or "none"
  std::string models;     // folder of the sentence encoders
  std::string embed_url;  // URL of an embedding server; empty: none
  std::string embed_api;
  std::string embed_model;
  std::string embed_key_file;
  std::string embed_query_prefix;
  std::int64_t embed_dimension = 0;  // 0: query the server
  std::int64_t embed_timeout_ms = 0;
  std::vector<std::string> expansion_hook;  // a command and its arguments
  std::vector<std::string> rerank_hook;
  std::int64_t hook_ms = 0;
  std::string rerank_url;
  std::string rerank_key_file;
  std::int64_t rerank_ms = 0;
  std::string answer_url;  // URL of a server with a language model that drafts answers; empty: none
  std::string answer_api;
  std::string answer_model;
  std::string answer_key_file;
  std::int64_t answer_ms = 0;
  std::string answer_unsupported;  // mark, drop
  std::string cloud_url;           // API of a cloud service; empty: none
  std::string cloud_provider;
  std::string cloud_model;
  std::string cloud_ca;          // file with the certificates that may sign its server's; empty: the system's
  std::string cloud_private;     // refuse, replace
  std::int64_t cloud_below = 0;  // percent of confidence
  std::int64_t cloud_ms = 0;
  std::int64_t cloud_calls_day = 0;
  std::int64_t cloud_bytes_day = 0;
  std::int64_t cloud_rate = 0;  // calls in a minute
  bool index_runs = false;      // default for runs that do not specify it
  std::string http_listen;      // address of MCP over HTTP; empty: none
  std::string http_token_file;
  std::string http_certificate_file;
  std::string http_key_file;
  std::vector<std::string> http_hosts;  // permitted host names
  std::vector<std::string> mcp_toolsets;
  std::vector<std::string> mcp_files;  // folders whose files MCP sessions may have read
  bool executor = true;                // the daemon starts recorded commands itself
  bool mcp_session_runs = false;       // default for sessions that do not specify it
  std::string completion_policy;       // a TOML file; empty: the default policy for all tasks
  std::string sanitiser_rules;         // a file of rules in the format of gitleaks; empty: the built-in rules
  std::string sanitiser_secrets;       // file with one secret per line; empty: none
  std::string attestation_keys;        // file with one verifier key per line; empty: none
  std::string price_list;              // a JSON file of prices; empty: the program's list; none: no list
  std::string prices;                  // prices of models as JSON, which replace those of the list (prices.hpp)
  std::string retention;               // rules of erasure by age as JSON (retention.hpp); empty: none
  std::string webhooks;                // receivers of messages as JSON (webhooks.hpp); empty: none
  std::int64_t upload_seconds = 0;
  std::int64_t commit_deadline_ms = 0;
  std::int64_t required_standbys = 0;
  std::string standbys;  // names of the standbys, separated by commas (standbys.hpp)
  std::string log_level;
  std::string log_format;
  std::vector<std::int64_t> allowed_uids;  // in addition to root and the daemon's user
  std::string allowed_group;               // a name; empty: none
};

// The member of Config that a key sets. Its type is the key's type.
using ConfigField = std::variant<std::string Config::*, std::int64_t Config::*, bool Config::*,
                                 std::vector<std::int64_t> Config::*, std::vector<std::string> Config::*>;

struct ConfigKey {
  std::string_view key;
  ConfigField field;
  std::string_view fallback;  // as text; empty if it depends on the location
  std::string_view unit;      // bytes, seconds, …, or empty
  std::int64_t min = 0;       // bounds of a number, inclusive
  std::int64_t max = 0;
  std::string_view text;  // one sentence
};

std::span<const ConfigKey> config_table();
std::string_view type_of(const ConfigKey& key);  // "text", "number", "yes or no", "numbers", "texts"

enum class ConfigSource : std::uint8_t { fallback, file, environment, flag };

// Source of the value of config_table()[i]: "default", "/x/muniment.toml", "MUNIMENT_DATA", "--data".
struct ConfigOrigin {
  ConfigSource source = ConfigSource::fallback;
  std::string where = "default";
};

struct LoadedConfig {
  Config values;
  std::vector<ConfigOrigin> origins;  // one for each row of the table
  std::string file;                   // the file that was read; empty: none
  std::string unread;                 // a file that the user may not read, if `may_go_without`; `file` is empty then
  std::vector<Error> problems;        // all problems; the preceding value remains in effect
};

// External inputs, replaceable so that tests need neither a home folder nor setenv.
struct ConfigInputs {
  std::vector<std::pair<std::string, std::string>> flags;  // key, value as text
  std::string file;                                        // --config; empty: <data>/muniment.toml
  std::optional<std::string> system_file;                  // the machine's file; empty: /etc/muniment/muniment.toml
  std::function<const char*(const char*)> environment;     // empty: getenv
  std::optional<bool> is_root;                             // empty: the effective uid decides
  // Set by the command line: ignores a default file that its user may not read. The daemon must not ignore its file,
  // because its settings would differ.
  bool may_go_without = false;
};

// Returns all values and all problems, for `muniment config print` and `check`.
LoadedConfig load_config(const ConfigInputs& inputs);
// Returns the values, or the first problem.
Result<Config> read_config(const ConfigInputs& inputs);

// Formats a value for `config print`: hides a password in a URI.
std::string shown_value(const Config& config, const ConfigKey& key);

// Returns a database URI or connection string with its password hidden.
std::string without_password(std::string uri);

// Returns whether the key is a list of texts, written as a JSON array if values are texts: ["/bin/cat","-u"].
bool is_list_of_texts(std::string_view key);

// Returns whether the key is a table of tables, written as a JSON object if values are texts.
bool is_table_of_tables(std::string_view key);

// Splits the text of a TOML file into keys and values as text, and calls `take` for each. Errors: invalid_argument,
// with line and column; not_found if `path` cannot be opened.
Status read_config_file(const std::string& path,
                        const std::function<void(std::string_view key, Result<std::string>)>& take);

}  // namespace muniment
