#include "base/config/config.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/config/prices.hpp"
#include "base/config/reporter_listen.hpp"
#include "base/config/retention.hpp"
#include "base/config/standbys.hpp"
#include "base/config/webhooks.hpp"
#include "base/ids.hpp"
#include "base/json/json.hpp"
#include "base/limits.hpp"

namespace muniment {
namespace {

constexpr std::int64_t any = INT64_MAX;
constexpr const char* root_data = "/var/lib/muniment";
constexpr const char* machine_file = "/etc/muniment/muniment.toml";
constexpr std::size_t socket_path_bytes_max = 107;  // sockaddr_un, without its final NUL

constexpr std::string_view retired_key = "use_lite";  // of earlier versions: has no effect

constexpr ConfigKey table[] = {
    {"data", &Config::data, "", "", 0, 0, "Data folder of the instance."},
    {"database", &Config::database, "", "", 0, 0,
     "URI of the database, postgresql://…; empty: a private Postgres in the data folder."},
    {"socket", &Config::socket, "", "", 0, 0, "Path of the Unix socket; empty: munimentd.sock in the data folder."},
    {"origin", &Config::origin, "muniment.local", "", 0, 0,
     "Name of the log's owner, such as example.com/agents; the origin of its checkpoints is <this name>/<log id>."},
    {"checkpoint_ms", &Config::checkpoint_ms, "200", "milliseconds", 10, 3'600'000,
     "Interval between signed checkpoints while events are appended."},
    {"witnesses", &Config::witnesses, "", "", 0, 0,
     "Witnesses that store signed checkpoints: folder:/PATH, s3://BUCKET/PREFIX, unix:/SOCKET VKEY or https://URL VKEY, separated by commas."},
    {"artifact_bytes_max", &Config::artifact_bytes_max, "4 GiB", "bytes", 1, any, "Size limit of an artifact."},
    {"disk_reserve_bytes", &Config::disk_reserve_bytes, "2 GiB", "bytes", 0, any,
     "Disk space to keep free; artifacts that would use it are refused."},
    {"disk_reserve_percent", &Config::disk_reserve_percent, "5", "percent", 0, 99,
     "Disk space to keep free, as a percentage; the larger of the two limits applies."},
    {"snapshot_events", &Config::snapshot_events, "256", "events", 1, any,
     "Number of events of a run after which a snapshot is taken."},
    {"snapshot_seconds", &Config::snapshot_seconds, "300", "seconds", 1, any,
     "Time after which a changed run is snapshotted."},
    {"partition_bits", &Config::partition_bits, "24", "", limits::partition_bits_min, limits::partition_bits_max,
     "Binary logarithm of the number of events in a partition of a new log; only full partitions can be archived."},
    {"workers", &Config::workers, "16", "threads", 1, 256,
     "Number of threads for requests that read, each with its own connection."},
    {"search_threads", &Config::search_threads, "4", "threads", 1, 64,
     "Number of concurrent searches in the search child; further ones wait."},
    {"query_cache_bytes", &Config::query_cache_bytes, "67108864", "bytes", 0, any,
     "Memory for cached answers to queries."},
    {"reporter_listen", &Config::reporter_listen, "", "", 0, 0,
     "TCP address of the private Postgres for analysts with the role reporter, such as 127.0.0.1:5433; empty: none."},
    {"reporter_password_file", &Config::reporter_password_file, "", "", 0, 0,
     "File with the password of the role reporter, closed to other users (chmod 600)."},
    {"reporter_clients", &Config::reporter_clients, "", "", 0, 0,
     "Networks that may connect to a reporter_listen that other machines can reach, such as 10.1.2.0/24, separated by commas."},
    {"redis", &Config::redis, "", "", 0, 0,
     "Redis server for cached answers that survive a restart, HOST:PORT or the path of its socket; empty: cache in memory only."},
    {"redis_password_file", &Config::redis_password_file, "", "", 0, 0, "File with the password of the Redis server."},
    {"redis_seconds", &Config::redis_seconds, "86400", "seconds", 1, any, "Lifetime of an answer in Redis."},
    {"encoder", &Config::encoder, "bge-small-en-v1.5", "", 0, 0,
     "Sentence encoder for passages and queries; none: no encoder, which saves 100 MB of memory."},
    {"models", &Config::models, "", "", 0, 0,
     "Folder of the sentence encoder and its runtime; empty: the one that muniment model install uses."},
    {"embed_url", &Config::embed_url, "", "", 0, 0,
     "URL of an embedding server for an additional lane, such as http://127.0.0.1:8080/v1/embeddings; empty: no such lane."},
    {"embed_api", &Config::embed_api, "", "", 0, 0,
     "API of the embedding server: openai, ollama or tei; empty: derived from the URL's path."},
    {"embed_model", &Config::embed_model, "", "", 0, 0,
     "Model to request from the embedding server; a change embeds all texts again."},
    {"embed_key_file", &Config::embed_key_file, "", "", 0, 0, "File with the bearer token for the embedding server."},
    {"embed_query_prefix", &Config::embed_query_prefix, "", "", 0, 0, "Prefix that the model requires before a query."},
    {"embed_dimension", &Config::embed_dimension, "0", "numbers", 0, limits::embedding_dimension_max,
     "Number of dimensions of the model's vectors; 0: query the server."},
    {"embed_timeout_ms", &Config::embed_timeout_ms, "10000", "milliseconds", 10, 600'000,
     "Time after which a server that embeds a batch of passages counts as unavailable; a query waits at most 2 seconds."},
    {"expansion_hook", &Config::expansion_hook, "", "", 0, 0,
     "Program that expands a query: absolute path and arguments."},
    {"rerank_hook", &Config::rerank_hook, "", "", 0, 0,
     "Program that scores the best passages of a query: absolute path and arguments."},
    {"hook_ms", &Config::hook_ms, "2000", "milliseconds", 10, limits::hook_ms_max,
     "Time limit of a hook; after it the query continues without the hook."},
    {"rerank_url", &Config::rerank_url, "", "", 0, 0,
     "URL of a server with TEI's /rerank, which scores the best passages of a query."},
    {"rerank_key_file", &Config::rerank_key_file, "", "", 0, 0, "File with the bearer token for rerank_url."},
    {"rerank_ms", &Config::rerank_ms, "2000", "milliseconds", 10, limits::hook_ms_max,
     "Time limit of a request to rerank_url."},
    {"answer_url", &Config::answer_url, "", "", 0, 0,
     "URL of a server whose language model drafts answers, such as http://127.0.0.1:11434/api/chat; empty: sentences of the passages."},
    {"answer_api", &Config::answer_api, "", "", 0, 0,
     "API of the answering server: openai or ollama; empty: derived from the URL's path."},
    {"answer_model", &Config::answer_model, "phi3", "", 0, 0, "Model to request from the answering server."},
    {"answer_key_file", &Config::answer_key_file, "", "", 0, 0, "File with the bearer token for the answering server."},
    {"answer_ms", &Config::answer_ms, "20000", "milliseconds", 10, limits::answer_ms_max,
     "Time limit of a draft; after it the answer consists of sentences of the passages."},
    {"answer_unsupported", &Config::answer_unsupported, "mark", "", 0, 0,
     "Treatment of a drafted sentence that no passage carries: mark or drop."},
    {"cloud_url", &Config::cloud_url, "", "", 0, 0,
     "https URL of a cloud service with OpenAI's API, which ask may question if a request permits it; empty: none."},
    {"cloud_provider", &Config::cloud_provider, "openai", "", 0, 0, "Name of the provider in records and sources."},
    {"cloud_model", &Config::cloud_model, "gpt-4o-mini", "", 0, 0, "Model to request from the cloud service."},
    {"cloud_ca", &Config::cloud_ca, "", "", 0, 0,
     "PEM file with the certificates that may sign the service's; empty: those of the system."},
    {"cloud_private", &Config::cloud_private, "refuse", "", 0, 0,
     "Treatment of a question with words that are private: refuse, or replace them by general nouns."},
    {"cloud_below", &Config::cloud_below, "50", "percent", 1, 100,
     "The cloud service is asked only if the confidence of the local answer is below this."},
    {"cloud_ms", &Config::cloud_ms, "20000", "milliseconds", 10, limits::cloud_ms_max,
     "Time limit of a call of the cloud service."},
    {"cloud_calls_day", &Config::cloud_calls_day, "100", "calls", 0, limits::cloud_calls_day_max,
     "Largest number of calls of each provider in 24 hours."},
    {"cloud_bytes_day", &Config::cloud_bytes_day, "10000000", "bytes", 0, limits::cloud_bytes_day_max,
     "Largest number of bytes sent to and received from each provider in 24 hours."},
    {"cloud_rate", &Config::cloud_rate, "10", "calls", 1, limits::cloud_rate_max,
     "Largest number of calls of each provider in a minute."},
    {"index_runs", &Config::index_runs, "false", "", 0, 0,
     "Index the events of runs for queries if run.start does not specify it: true or false."},
    {"http_listen", &Config::http_listen, "", "", 0, 0,
     "Address and port of MCP over HTTP, 127.0.0.1:8765; empty: none."},
    {"http_token_file", &Config::http_token_file, "", "", 0, 0,
     "File with the bearer token of HTTP clients (default: <data>/keys/http.token, made at the first start)."},
    {"http_certificate_file", &Config::http_certificate_file, "", "", 0, 0,
     "PEM file with the certificate of http_listen; required for an address that is not loopback."},
    {"http_key_file", &Config::http_key_file, "", "", 0, 0, "PEM file with the certificate's private key."},
    {"http_hosts", &Config::http_hosts, "", "", 0, 0,
     "Host names by which clients may reach http_listen, in addition to the loopback names."},
    {"mcp_toolsets", &Config::mcp_toolsets, "", "", 0, 0,
     "Additional tools for MCP hosts, beyond the 12 default ones: runs, ledger, documents, tasks."},
    {"mcp_files", &Config::mcp_files, "", "", 0, 0,
     "Absolute paths of folders whose files the tool remember may read, for all MCP sessions of the daemon's user; empty: none."},
    {"mcp_session_runs", &Config::mcp_session_runs, "false", "", 0, 0,
     "Record each MCP session as a run: true or false; `muniment mcp` always does unless --no-run is given."},
    {"executor", &Config::executor, "true", "", 0, 0,
     "Start the commands of muniment exec and workflow run in a child of the daemon, so that their events are observations: true or false."},
    {"completion_policy", &Config::completion_policy, "", "", 0, 0,
     "TOML file with the policies of task completion, by type of task (docs/evidence.md; default: one policy for all)."},
    {"attestation_keys", &Config::attestation_keys, "", "", 0, 0,
     "File with the verifier keys, one per line, whose attestations of test results count as evidence (default: none)."},
    {"sanitiser_rules", &Config::sanitiser_rules, "", "", 0, 0,
     "TOML file with rules in the format of gitleaks, which find secrets in addition to the built-in rules (default: none)."},
    {"sanitiser_secrets", &Config::sanitiser_secrets, "", "", 0, 0,
     "File with one secret of 8 bytes or more per line, which is removed wherever secrets are (default: none)."},
    {"price_list", &Config::price_list, "", "", 0, 0,
     "JSON file with the prices of models, by which costs that were not recorded are estimated (docs/recording.md; default: the dated list of the program; none: no list)."},
    {"prices", &Config::prices, "", "", 0, 0,
     "Prices that replace those of the list or add to it, one table for each model: [prices.\"gpt-4o\"] input = 2.5, output = 10 (USD per million tokens)."},
    {"retention", &Config::retention, "", "", 0, 0,
     "Rules by which muniment retention apply erases old runs, one table each: [retention.NAME] days, label, agent, thread (docs/operations.md)."},
    {"webhooks", &Config::webhooks, "", "", 0, 0,
     "Receivers of signed HTTP messages about events, one table each: [webhooks.NAME] url, secret_file, types (docs/operations.md)."},
    {"upload_seconds", &Config::upload_seconds, "86400", "seconds", 1, any,
     "Time for which an interrupted upload can be resumed."},
    {"commit_deadline_ms", &Config::commit_deadline_ms, "10000", "milliseconds", 100, 600'000,
     "Time after which a Postgres that does not answer counts as unavailable."},
    {"required_standbys", &Config::required_standbys, "0", "standbys", 0, 100,
     "Number of synchronous standbys that must confirm each commit; without them the daemon does not start and appends nothing."},
    {"standbys", &Config::standbys, "", "", 0, 0,
     "Names (application_name) of the standbys of which required_standbys, at least one, must have flushed each commit, separated by commas."},
    {"log_level", &Config::log_level, "info", "", 0, 0, "Log level: error, warn, info or debug."},
    {"log_format", &Config::log_format, "text", "", 0, 0, "Log format: text, or json for one object per line."},
    {"allowed_uids", &Config::allowed_uids, "", "", 0, 0xFFFF'FFFE,
     "Numeric ids of users who may connect, in addition to root and the daemon's user."},
    {"allowed_group", &Config::allowed_group, "", "", 0, 0, "Name of a group whose members may connect, too."},
};

struct Unit {
  std::string_view suffix;
  int shift;
};
constexpr Unit byte_units[] = {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};

Error bad_value(const ConfigKey& key, std::string_view value, std::string_view why) {
  return Error(Errc::invalid_argument, fmt::format("{} = \"{}\": {}", key.key, value, why));
}

Result<std::int64_t> number_of(const ConfigKey& key, std::string_view value) {
  std::string_view digits = value;
  int shift = 0;
  if (key.unit == "bytes") {
    for (const Unit& unit : byte_units) {
      if (!digits.ends_with(unit.suffix)) continue;
      digits.remove_suffix(unit.suffix.size());
      while (digits.ends_with(' ')) digits.remove_suffix(1);
      shift = unit.shift;
      break;
    }
  }
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool whole = failed == std::errc() && end == digits.data() + digits.size();
  if (!whole || number > (INT64_MAX >> shift)) {
    return bad_value(
        key, value,
        key.unit == "bytes" ? "give a whole number, or one with KiB, MiB, GiB or TiB" : "give a whole number");
  }
  number *= std::int64_t{1} << shift;
  if (number < key.min || number > key.max) {
    return bad_value(
        key, value,
        key.max == any ? fmt::format("give at least {}", key.min) : fmt::format("give {} to {}", key.min, key.max));
  }
  return number;
}

Result<std::vector<std::int64_t>> numbers_of(const ConfigKey& key, std::string_view value) {
  std::vector<std::int64_t> numbers;
  while (!value.empty()) {
    const std::size_t comma = value.find(',');
    std::string_view item = value.substr(0, comma);
    while (item.starts_with(' ')) item.remove_prefix(1);
    ASSIGN_OR_RETURN(const std::int64_t number, number_of(key, item));
    numbers.push_back(number);
    value = comma == std::string_view::npos ? std::string_view() : value.substr(comma + 1);
  }
  return numbers;
}

// Parses a JSON array of texts, or one text that is not an array.
Result<std::vector<std::string>> texts_of(const ConfigKey& key, std::string_view value) {
  std::vector<std::string> list;
  if (value.empty()) return list;
  if (!value.starts_with('[')) return std::vector{std::string(value)};
  const auto parsed = json::parse(value);
  const Error bad = bad_value(key, value, "give a list of texts: [\"/usr/local/bin/program\", \"argument\"]");
  if (!parsed) return bad;
  for (const json::Value item : parsed->root()) {
    auto text = item.as_string();
    if (!text) return bad;
    list.push_back(*std::move(text));
  }
  return list;
}

// Requires an absolute path, so that PATH cannot change the program.
Status check_command(const ConfigKey& key, const std::vector<std::string>& command) {
  if (command.empty() || !key.key.ends_with("_hook")) return success();
  if (!command.front().starts_with('/'))
    return bad_value(key, command.front(), "give the absolute path of a program and its arguments");
  if (command.size() <= limits::hook_arguments_max) return success();
  return bad_value(key, command.front(), fmt::format("a command has at most {} parts", limits::hook_arguments_max));
}

Status check_folders(const ConfigKey& key, const std::vector<std::string>& folders) {
  if (key.key != "mcp_files") return success();
  for (const std::string& folder : folders) {
    if (!folder.starts_with('/')) return bad_value(key, folder, "give absolute paths; ~ is not expanded");
  }
  if (folders.size() <= limits::mcp_folders_max) return success();
  return bad_value(key, folders.front(), fmt::format("give at most {} folders", limits::mcp_folders_max));
}

bool names_host_and_port(std::string_view value) {
  const std::size_t colon = value.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const char* const end = value.data() + value.size();
  int port = 0;
  const auto read = std::from_chars(value.data() + colon + 1, end, port);
  return read.ec == std::errc() && read.ptr == end && port > 0 && port < 65'536;
}

// The key is read from the environment, so that the URL needs no password; it leaves this machine only encrypted.
Status check_cloud(const ConfigKey& key, std::string_view value) {
  if (key.key == "cloud_url" && !value.empty() &&
      (!value.starts_with("https://") || value.size() < 9 || value.find_first_of("@ \t\n") != std::string_view::npos))
    return bad_value(key, value, "give https://HOST[:PORT][/PATH] without a user or a password, or nothing");
  const bool is_name = value.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-_") == std::string_view::npos;
  if (key.key == "cloud_provider" && (value.empty() || value.size() > 64 || !is_name || value == "command"))
    return bad_value(key, value, "give 1 to 64 small letters, digits, '.', '-' and '_'; not \"command\"");
  if (key.key == "cloud_model" && (value.empty() || value.size() > 256))
    return bad_value(key, value, "give 1 to 256 bytes");
  if (key.key == "cloud_ca" && !value.empty() && !value.starts_with('/'))
    return bad_value(key, value, "give an absolute path; ~ is not expanded");
  if (key.key == "cloud_private" && value != "refuse" && value != "replace")
    return bad_value(key, value, "give refuse or replace");
  return success();
}

Status check_text(const ConfigKey& key, std::string_view value, ConfigSource source) {
  if (key.key == "log_level" && value != "error" && value != "warn" && value != "info" && value != "debug") {
    return bad_value(key, value, "give error, warn, info or debug");
  }
  if (key.key == "prices") RETURN_IF_ERROR(parse_prices(value));
  if (key.key == "retention") RETURN_IF_ERROR(parse_retention(value));
  if (key.key == "webhooks") RETURN_IF_ERROR(parse_webhooks(value));
  if (key.key == "log_format" && value != "text" && value != "json") return bad_value(key, value, "give text or json");
  // A relative path would refer to the daemon's working folder, which the author of the file does not know.
  if ((key.key == "completion_policy" || key.key == "attestation_keys" || key.key.starts_with("sanitiser_")) &&
      !value.empty() && !value.starts_with('/'))
    return bad_value(key, value, "give an absolute path; ~ is not expanded");
  if (key.key == "price_list" && !value.empty() && value != "none" && !value.starts_with('/'))
    return bad_value(key, value, "give an absolute path, or none; ~ is not expanded");
  if (key.key == "embed_api" && !value.empty() && value != "openai" && value != "ollama" && value != "tei") {
    return bad_value(key, value, "give openai, ollama or tei, or nothing");
  }
  // Messages show the URL, so it must not contain a password.
  if ((key.key == "embed_url" || key.key == "rerank_url" || key.key == "answer_url") &&
      value.find('@') != std::string_view::npos) {
    const std::string_view name = key.key.substr(0, key.key.find('_'));
    return Error(
        Errc::invalid_argument,
        fmt::format("{0}_url has a user or a password in it. Put the key into a file, and its path into {0}_key_file.",
                    name));
  }
  if (key.key.starts_with("cloud_")) RETURN_IF_ERROR(check_cloud(key, value));
  if (key.key == "redis" && !value.empty() && !value.starts_with('/') && !names_host_and_port(value)) {
    return bad_value(key, value, "give HOST:PORT, or the path of a Unix socket");
  }
  if (key.key == "answer_api" && !value.empty() && value != "openai" && value != "ollama")
    return bad_value(key, value, "give openai or ollama, or nothing");
  if (key.key == "answer_unsupported" && value != "mark" && value != "drop")
    return bad_value(key, value, "give mark or drop");
  if ((key.key == "rerank_url" || key.key == "answer_url") && !value.empty() && !value.starts_with("http://") &&
      !value.starts_with("https://")) {
    return bad_value(key, value, "give http://… or https://…");
  }
  if (key.key == "origin" &&
      (value.empty() || value.size() > 200 || value.find_first_of("+ \t\n") != std::string_view::npos)) {
    return bad_value(key, value, "give 1 to 200 bytes without spaces and +");
  }
  if (key.key == "database" && !value.empty()) {
    if (!value.starts_with("postgresql://") && !value.starts_with("postgres://")) {
      return Error(Errc::invalid_argument, "database is not a postgresql:// URI");
    }
    const std::size_t at = value.find('@');
    const std::size_t colon = value.find(':', value.find("//"));
    if (source == ConfigSource::flag && at != std::string_view::npos && colon < at) {
      return Error(Errc::invalid_argument,
                   "database contains a password, but command lines are visible to other users. Put the URI into the "
                   "configuration file or MUNIMENT_DATABASE, or the password into PGPASSFILE.");
    }
  }
  return success();
}

Status set_value(Config& config, const ConfigKey& key, std::string_view value, ConfigSource source) {
  if (const auto* text = std::get_if<std::string Config::*>(&key.field)) {
    RETURN_IF_ERROR(check_text(key, value, source));
    config.*(*text) = value;
  } else if (const auto* number = std::get_if<std::int64_t Config::*>(&key.field)) {
    ASSIGN_OR_RETURN(config.*(*number), number_of(key, value));
  } else if (const auto* flag = std::get_if<bool Config::*>(&key.field)) {
    if (value != "true" && value != "false") return bad_value(key, value, "give true or false");
    config.*(*flag) = value == "true";
  } else if (const auto* numbers = std::get_if<std::vector<std::int64_t> Config::*>(&key.field)) {
    ASSIGN_OR_RETURN(config.*(*numbers), numbers_of(key, value));
  } else if (const auto* list = std::get_if<std::vector<std::string> Config::*>(&key.field)) {
    ASSIGN_OR_RETURN(std::vector<std::string> command, texts_of(key, value));
    RETURN_IF_ERROR(check_command(key, command));
    RETURN_IF_ERROR(check_folders(key, command));
    config.*(*list) = std::move(command);
  }
  return success();
}

class Loader {
 public:
  explicit Loader(const ConfigInputs& inputs) : inputs_(inputs) { loaded_.origins.resize(std::size(table)); }

  LoadedConfig load() {
    for (std::size_t i = 0; i < std::size(table); ++i) {
      set(i, table[i].fallback, ConfigSource::fallback, "default");
    }
    find_data();
    read_file();
    read_environment();
    read_flags();
    place_socket();
    const auto listen = reporter_listen_of(loaded_.values);
    if (!listen) loaded_.problems.push_back(listen.error());
    const auto standbys = standbys_of(loaded_.values);
    if (!standbys) loaded_.problems.push_back(standbys.error());
    return std::move(loaded_);
  }

 private:
  const char* environment(const std::string& name) const {
    return inputs_.environment ? inputs_.environment(name.c_str()) : std::getenv(name.c_str());
  }

  static std::string environment_name(std::string_view key) {
    std::string name = "MUNIMENT_";
    for (char c : key) name.push_back(c == '_' ? '_' : static_cast<char>(c - 'a' + 'A'));
    return name;
  }

  void set(std::size_t row, std::string_view value, ConfigSource source, std::string where) {
    if (Status status = set_value(loaded_.values, table[row], value, source); !status) {
      loaded_.problems.push_back(std::move(status).error().within(where));
      return;
    }
    loaded_.origins[row] = {source, std::move(where)};
  }

  std::string default_data() {
    if (inputs_.is_root.value_or(geteuid() == 0)) return root_data;
    if (const char* xdg = environment("XDG_DATA_HOME"); xdg != nullptr && xdg[0] == '/') {
      return std::string(xdg) + "/muniment";
    }
    if (const char* home = environment("HOME"); home != nullptr && home[0] == '/') {
      return std::string(home) + "/.local/share/muniment";
    }
    loaded_.problems.emplace_back(Errc::invalid_argument,
                                  "HOME is not set, so that there is no default data folder. Give --data DIR.");
    return "muniment-data";
  }

  // The data folder determines which file is read. It is therefore determined first, and the file in it cannot change
  // it. A file given by --config can.
  void find_data() {
    loaded_.values.data = default_data();
    read_environment("data");
    read_flags("data");
  }

  bool names_place(const std::string& key) const {
    const char* const value = environment(environment_name(key));
    const auto named = [&key](const auto& flag) { return flag.first == key; };
    return (value != nullptr && *value != '\0') || std::ranges::any_of(inputs_.flags, named);
  }

  // A user who cannot read the machine's file uses a separate instance.
  std::string file_to_read() const {
    if (!inputs_.file.empty()) return inputs_.file;
    std::error_code ignored, failed;
    std::string beside = loaded_.values.data + "/muniment.toml";
    if (std::filesystem::exists(beside, failed)) return beside;
    if (failed == std::errc::permission_denied && names_place("data"))
      return beside;  // the folder is unreadable, so the file may exist
    const bool own = loaded_.values.data != root_data && std::filesystem::exists(loaded_.values.data, ignored);
    const std::string system = inputs_.system_file.value_or(machine_file);
    const bool placed = names_place("data") || names_place("socket") || names_place("database");
    const bool service = !own && !placed && ::access(system.c_str(), R_OK) == 0;
    return service ? system : std::string();
  }

  void read_file() {
    loaded_.file = file_to_read();
    if (loaded_.file.empty()) return;
    const Status status = read_config_file(loaded_.file, [this](std::string_view key, Result<std::string> value) {
      take_from_file(key, std::move(value));
    });
    if (status) return;
    if (inputs_.may_go_without && inputs_.file.empty() && status.error().code == Errc::denied) {
      loaded_.unread = std::exchange(loaded_.file, std::string());
    } else {
      loaded_.problems.push_back(status.error());
    }
  }

  void take_from_file(std::string_view key, Result<std::string> value) {
    const std::size_t row = row_of(key);
    if (key == retired_key) return;
    if (row == std::size(table)) {
      std::vector<std::string_view> names;
      for (const ConfigKey& known : table) names.push_back(known.key);
      const std::string_view near = nearest(key, names);
      loaded_.problems.emplace_back(
          Errc::invalid_argument,
          fmt::format("{}: unknown key \"{}\".{}", loaded_.file, key,
                      near.empty() ? " See: muniment config print" : fmt::format(" Did you mean \"{}\"?", near)));
      return;
    }
    if (!value) {
      loaded_.problems.push_back(std::move(value).error().within(fmt::format("{}: {}", loaded_.file, key)));
    } else if (key == "data" && loaded_.file == loaded_.values.data + "/muniment.toml" && inputs_.file.empty()) {
      loaded_.problems.emplace_back(Errc::invalid_argument,
                                    fmt::format("{}: \"data\" cannot be set in the folder that it names. Give --data, "
                                                "MUNIMENT_DATA or --config FILE.",
                                                loaded_.file));
    } else {
      set(row, *value, ConfigSource::file, loaded_.file);
    }
  }

  void read_environment(std::string_view only = {}) {
    for (std::size_t i = 0; i < std::size(table); ++i) {
      if (!only.empty() && table[i].key != only) continue;
      const std::string name = environment_name(table[i].key);
      const char* value = environment(name);
      if (value != nullptr && *value != '\0') set(i, value, ConfigSource::environment, name);
    }
  }

  void read_flags(std::string_view only = {}) {
    for (const auto& [key, value] : inputs_.flags) {
      if (!only.empty() && key != only) continue;
      const std::size_t row = row_of(key);
      if (row < std::size(table)) set(row, value, ConfigSource::flag, "--" + key);
    }
  }

  // Paths are made absolute, because the daemon changes its working folder and messages are read elsewhere.
  void place_socket() {
    Config& config = loaded_.values;
    config.data = absolute(config.data);
    config.socket = config.socket.empty() ? config.data + "/munimentd.sock" : absolute(config.socket);
    if (config.socket.size() > socket_path_bytes_max) {
      loaded_.problems.emplace_back(
          Errc::invalid_argument,
          fmt::format("the socket's path is {} bytes, limit {}: {}. Set a shorter one: --socket or "
                      "MUNIMENT_SOCKET.",
                      config.socket.size(), socket_path_bytes_max, config.socket));
    }
  }

  static std::string absolute(const std::string& path) {
    std::error_code failed;
    std::filesystem::path whole = std::filesystem::absolute(path, failed).lexically_normal();
    if (!whole.has_filename() && whole.has_relative_path()) whole = whole.parent_path();
    return failed ? path : whole.string();
  }

  static std::size_t row_of(std::string_view key) {
    std::size_t row = 0;
    while (row < std::size(table) && table[row].key != key) ++row;
    return row;
  }

  const ConfigInputs& inputs_;
  LoadedConfig loaded_;
};

}  // namespace

std::span<const ConfigKey> config_table() { return table; }

std::string_view type_of(const ConfigKey& key) {
  constexpr std::string_view names[] = {"text", "number", "yes or no", "numbers", "texts"};
  return names[key.field.index()];
}

bool is_list_of_texts(std::string_view key) {
  return std::ranges::any_of(table,
                             [key](const ConfigKey& known) { return known.key == key && type_of(known) == "texts"; });
}

bool is_table_of_tables(std::string_view key) { return key == "prices" || key == "retention" || key == "webhooks"; }

LoadedConfig load_config(const ConfigInputs& inputs) { return Loader(inputs).load(); }

Result<Config> read_config(const ConfigInputs& inputs) {
  LoadedConfig loaded = load_config(inputs);
  if (!loaded.problems.empty()) return std::move(loaded.problems.front());
  return std::move(loaded.values);
}

}  // namespace muniment
