// Implements the commands up, down, status, config and rebuild.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "base/clock.hpp"
#include "base/config/prices.hpp"
#include "base/crypto/dsse.hpp"
#include "base/json/json.hpp"
#include "base/text.hpp"
#include "bridge/local_rules.hpp"
#include "cli/commands.hpp"
#include "cli/connect/late_followers.hpp"
#include "cli/doctor/doctor.hpp"
#include "client/connect/autostart.hpp"
#include "client/connect/pages.hpp"
#include "evidence/completion/policy.hpp"
#include "store/logs/log_place.hpp"
#include "webhook/message.hpp"

namespace muniment::cli {
namespace {

constexpr std::chrono::seconds stop_patience{120};  // the daemon writes queued events before it ends

std::string text_or(const json::Value& value, std::string_view fallback) {
  if (value.is(json::Kind::string)) return value.string_or(fallback);
  return value ? std::string(value.source()) : std::string(fallback);
}

// Returns the members of an object on one line: "indexer 41, snapshotter 42".
std::string listed(const json::Value& object) {
  std::string text;
  for (const json::Value member : object) {
    text += (text.empty() ? "" : ", ") + member.key() + " " + text_or(member, "");
  }
  return text;
}

void print_disk(const Output& out, const json::Value& disk) {
  const auto free = disk["free_bytes"].as_int();
  const auto reserve = disk["reserve_bytes"].as_int();
  if (!free) return;
  std::string text = human_size(static_cast<std::uint64_t>(*free)) + " free";
  if (reserve) text += ", " + human_size(static_cast<std::uint64_t>(*reserve)) + " reserved";
  out.line("disk       " + text);
}

void print_degraded(const Output& out, const json::Value& degraded) {
  if (degraded.size() == 0) {
    out.line("health     " + out.tone(Tone::green, "well"));
    return;
  }
  for (const json::Value item : degraded) {
    const std::string text = out.advised(item.is(json::Kind::object) ? listed(item) : text_or(item, ""));
    out.line("health     " + out.tone(Tone::red, "degraded: " + out.one_line(text)));
  }
}

// Returns the folder that holds the files of the current log.
std::string own_folder_of(const json::Value& status) {
  std::int64_t newest_closed = 0;
  for (const json::Value log : status["earlier_logs"])
    newest_closed = std::max(newest_closed, log["log_no"].as_int().value_or(0));
  return store::log_folder(std::string(status["data_dir"].string_or("")), static_cast<std::int16_t>(newest_closed + 1));
}

// Describes the signature. The daemon does not sign a restored log, and may not know its earlier signatures.
std::string signed_text(const json::Value& status) {
  const json::Value checkpoint = status["checkpoint"];
  const std::string events = many(checkpoint["size"].as_int().value_or(0), "event", "events");
  if (checkpoint["signed"].as_bool().value_or(false)) return events;
  const auto before = checkpoint["signed_before"].as_int();
  if (is_read_only(status)) {
    return (before ? many(*before, "event", "events") + "; " : "") +
           "nothing newer: this log is restored and read-only. To see what signed notes cover: muniment audit verify";
  }
  if (before) return signed_before_words(*before, own_folder_of(status));
  return "nothing: no checkpoint is signed (muniment audit key init)";
}

// Counts the halted runs, which do not make the daemon unhealthy. Halted runs of closed logs are not counted. A
// database that does not answer must not delay the rest of the status.
Result<std::size_t> halted_runs(Client& client) {
  std::size_t halted = 0;
  RETURN_IF_ERROR(each_item(client, "run.list", R"({"status":"halted","limit":1000,"_meta":{"deadline_ms":2000}})",
                            "runs", [&](const json::Value& run) -> Result<bool> {
                              if (!run["log_no"]) ++halted;
                              return true;
                            }));
  return halted;
}

void print_halted(const Output& out, const Result<std::size_t>& halted) {
  if (!halted) out.line("runs       " + out.tone(Tone::red, "unknown: " + out.one_line(halted.error().message)));
  if (halted && *halted > 0)
    out.line("runs       " + out.tone(Tone::red, grouped(*halted) + " halted") +
             out.advised(": muniment run list --status halted"));
}

void print_followers(const Output& out, const std::vector<LateFollower>& late) {
  const Time now = Clock().now();
  if (late.empty()) out.line("followers  up to date");
  for (const LateFollower& follower : late)
    out.line("behind     " + out.tone(Tone::yellow, out.advised(explained(follower, now))));
}

void print_webhooks(const Output& out, const json::Value& webhooks) {
  for (const json::Value webhook : webhooks) {
    const auto count = [&](std::string_view name) { return webhook[name].as_int().value_or(0); };
    std::string text = out.safe(webhook["name"].string_or("")) + "  " + out.safe(webhook["url"].string_or("")) + "  " +
                       many(count("delivered"), "message", "messages") + " delivered";
    if (count("behind") > 0) text += ", " + many(count("behind"), "event", "events") + " behind";
    if (count("skipped") > 0)
      text += out.tone(Tone::red, ", " + many(count("skipped"), "event", "events") + " skipped");
    if (const json::Value next = webhook["next_attempt_at"]) text += ", next attempt at " + next.string_or("");
    out.line("webhook    " + text);
  }
}

// Parts of the status that need further requests.
struct StatusDetails {
  Result<std::size_t> halted;
  std::vector<LateFollower> late;
};

void print_status(const Output& out, const json::Value& status, std::int32_t pid, const StatusDetails& details) {
  const json::Value log = status["log"];
  out.line(fmt::format("munimentd  {} (pid {})", status["version"].string_or("?"), pid));
  out.line("socket     " + out.safe(status["socket"].string_or("")));
  out.line("database   " + out.safe(text_or(status["database"], "")));
  const auto in_flight = static_cast<std::uint64_t>(log["in_flight"].as_int().value_or(0));
  out.line(fmt::format("log        {}  {}{}", log["log_id"].string_or("").substr(0, 8),
                       many(log["size"].as_int().value_or(0), "event", "events"),
                       in_flight > 0 ? ", and " + grouped(in_flight) + " awaiting the outcome of their commit" : ""));
  for (const json::Value earlier : status["earlier_logs"]) {
    out.line(fmt::format("earlier    {}  {}, log {}, closed", earlier["log_id"].string_or("").substr(0, 8),
                         many(earlier["size"].as_int().value_or(0), "event", "events"), earlier["log_no"].source()));
  }
  out.line("root       " + log["root"].string_or(""));
  const json::Value checkpoint = status["checkpoint"];
  out.line("signed     " + out.advised(out.safe(signed_text(status))));
  if (const auto again = checkpoint["files_made_again"].as_int(); again.value_or(0) > 0) {
    out.line(fmt::format("tiles      {} truncated files were rebuilt at startup",
                         grouped(static_cast<std::uint64_t>(*again))));
  }
  print_followers(out, details.late);
  print_webhooks(out, status["webhooks"]);
  print_disk(out, status["disk"]);
  print_degraded(out, status["degraded"]);
  print_halted(out, details.halted);
  for (const json::Value note : status["notes"])
    out.line("note       " + out.one_line(note.string_or("")) + out.advised(" (muniment doctor)"));
}

Status show_status(Session& session, const NoOptions&) {
  ASSIGN_OR_RETURN(Client* const client, session.running_client());
  ASSIGN_OR_RETURN(const Message answer, client->call("server.status", "{}"));
  if (session.printed_json(answer)) return success();
  const StatusDetails details{halted_runs(*client), late_followers(*client, answer.result(), Clock().now())};
  print_status(session.out(), answer.result(), client->daemon_pid(), details);
  return success();
}

struct UpOptions {
  bool continue_restored = false;
};

void declare_up(CLI::App& command, UpOptions& options) {
  command.add_flag("--continue-restored", options.continue_restored,
                   "Continue a restored log in a new log that names it");
}

Status bring_up(Session& session, const UpOptions& options) {
  if (session.options.no_autostart) {
    return Error(Errc::invalid_argument, "up starts the daemon, but --no-autostart forbids it. Omit --no-autostart");
  }
  if (options.continue_restored && session.running_client()) {
    return Error(Errc::conflict, "a daemon is running; stop it first: muniment down");
  }
  session.continue_restored = options.continue_restored;
  RETURN_IF_ERROR(session.client());
  return show_status(session, NoOptions{});
}

Status bring_down(Session& session, const NoOptions&) {
  auto client = session.running_client();
  const bool running = client.ok();
  ASSIGN_OR_RETURN(const Config configuration, session.config());
  if (!running && client.error().code != Errc::unavailable) return std::move(client).error();
  // A daemon just started by socket activation must have answered once before its process is identified.
  if (running) RETURN_IF_ERROR((*client)->call("server.health", "{}"));
  const std::int32_t pid = running ? (*client)->daemon_pid() : 0;
  if (running && pid == 0) {
    return Error(Errc::unavailable, "the daemon runs in another container; stop it there");
  }
  if (running) RETURN_IF_ERROR(stop_daemon(pid, stop_patience));
  if (session.options.json) {
    session.out().line(running ? fmt::format("{{\"stopped\":true,\"pid\":{}}}", pid) : "{\"stopped\":false}");
  } else {
    session.out().line(running
                           ? fmt::format("munimentd (pid {}) has stopped", pid)
                           : "no daemon is running: no process answers at " + session.out().safe(configuration.socket));
  }
  return success();
}

struct RebuildOptions {
  std::vector<std::string> tables;
};

void declare_rebuild(CLI::App& command, RebuildOptions& options) {
  command.add_option("TABLE", options.tables, "Tables to rebuild (default: all)");
}

// Compares each table with the log and replaces rows that differ.
Status rebuild(Session& session, const RebuildOptions& options) {
  json::Writer params;
  params.begin_object();
  if (!options.tables.empty()) {
    params.key("tables").begin_array();
    for (const std::string& table : options.tables) params.string(table);
    params.end_array();
  }
  params.end_object();
  ASSIGN_OR_RETURN(const Message answer, session.call("server.rebuild", params.text()));
  if (session.printed_json(answer)) return success();
  const Output& out = session.out();
  for (const json::Value table : answer.result()["tables"]) {
    const bool equal = table["equal"].as_bool().value_or(false);
    std::string text = fmt::format("{:<10} {:>10} rows  ", table["name"].string_or(""),
                                   grouped(static_cast<std::uint64_t>(table["rows"].as_int().value_or(0))));
    text += equal
                ? out.tone(Tone::green, "consistent with the log")
                : out.tone(Tone::yellow, fmt::format("{} missing or different, {} unexplained{}",
                                                     table["missing"].source(), table["unexpected"].source(),
                                                     table["replaced"].as_bool().value_or(false) ? "; repaired" : ""));
    out.line(text);
  }
  return success();
}

std::string not_yours_to_read(const std::string& file) {
  return fmt::format("{} is not readable by you (uid {})", file, ::geteuid());
}

Status print_config(Session& session, const NoOptions&) {
  const LoadedConfig loaded = load_config(session.config_inputs());
  const Output& out = session.out();
  json::Writer writer;
  writer.begin_object();
  Table table({"key", "value", "unit", "from", "meaning"});
  for (std::size_t i = 0; i < config_table().size(); ++i) {
    const ConfigKey& key = config_table()[i];
    const std::string value = shown_value(loaded.values, key);
    writer.key(key.key).begin_object();
    writer.member("value", value).member("type", type_of(key)).member("unit", key.unit);
    writer.member("from", loaded.origins[i].where).member("default", key.fallback);
    if (type_of(key) == "number") {
      writer.member("min", key.min);
      if (key.max != INT64_MAX) writer.member("max", key.max);
    }
    writer.member("text", key.text).end_object();
    table.add({std::string(key.key), value.empty() ? "\"\"" : out.safe(value), std::string(key.unit),
               loaded.origins[i].where, out.tone(Tone::dim, key.text)});
  }
  writer.end_object();
  if (session.options.json) {
    out.json_line(writer.text());
  } else {
    table.print(out);
  }
  if (!loaded.unread.empty()) {
    fmt::print(stderr, "muniment: {}: these are the values that the command line uses; the daemon may use others\n",
               escape_for_terminal(not_yours_to_read(loaded.unread)));
  }
  return loaded.problems.empty() ? success() : Status(loaded.problems.front());
}

Status check_config(Session& session, const NoOptions&) {
  LoadedConfig loaded = load_config(session.config_inputs());
  if (!loaded.unread.empty()) {
    loaded.problems.emplace_back(
        Errc::denied, not_yours_to_read(loaded.unread) +
                          ": its contents, if it exists, were not checked. The command line continues without it");
    loaded.file = loaded.unread;
  }
  if (auto policies = evidence::completion::Policies::read(loaded.values.completion_policy); !policies)
    loaded.problems.push_back(std::move(policies).error());
  if (auto keys = read_trusted_keys(loaded.values.attestation_keys); !keys)
    loaded.problems.push_back(std::move(keys).error());
  if (auto prices = read_price_list(loaded.values.price_list, loaded.values.prices); !prices)
    loaded.problems.push_back(std::move(prices).error());
  const char* const no_environment[] = {nullptr};
  if (auto rules = bridge::read_local_rules(loaded.values, no_environment); !rules)
    loaded.problems.push_back(std::move(rules).error());
  if (auto webhooks = webhook::read_webhooks(loaded.values.webhooks); !webhooks)
    loaded.problems.push_back(std::move(webhooks).error());
  if (session.options.json) {
    json::Writer writer;
    writer.begin_object().member("ok", loaded.problems.empty()).member("file", loaded.file);
    writer.key("problems").begin_array();
    for (const Error& problem : loaded.problems) writer.string(problem.message);
    writer.end_array().end_object();
    session.out().json_line(writer.text());
    if (!loaded.problems.empty()) session.exit_code = exit_refused;
    return success();
  }
  if (!loaded.unread.empty() && loaded.problems.size() == 1) return loaded.problems.front();
  for (const Error& problem : loaded.problems) session.out().line(session.out().safe(problem.message));
  if (!loaded.problems.empty()) {
    return Error(Errc::invalid_argument,
                 many(std::ssize(loaded.problems), "problem", "problems") + " in the configuration");
  }
  session.out().line(loaded.file.empty() ? "the configuration is valid; there is no file"
                                         : "the configuration is valid: " + loaded.file);
  return success();
}

}  // namespace

void add_server_commands(CLI::App& app, Session& session) {
  add_command<UpOptions>(session, app, "up", "Start the daemon if it is not running", declare_up, bring_up);
  add_command<NoOptions>(session, app, "down", "Stop the daemon", nullptr, bring_down);
  add_command<NoOptions>(session, app, "status", "Show the state of the daemon", nullptr, show_status);
  add_command<RebuildOptions>(session, app, "rebuild", "Rebuild the derived tables from the log", declare_rebuild,
                              rebuild);
  CLI::App& config = add_group(app, "config", "Show or check the configuration");
  add_command<NoOptions>(session, config, "print", "Print all values with their sources", nullptr, print_config);
  add_command<NoOptions>(session, config, "check", "Print only the errors in the configuration", nullptr, check_config);
}

}  // namespace muniment::cli
