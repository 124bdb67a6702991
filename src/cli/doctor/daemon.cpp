// Checks of the daemon for doctor: whether it answers, and the state that it reports.
#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <thread>

#include "base/json/json.hpp"
#include "base/text.hpp"
#include "cli/doctor/doctor.hpp"
#include "cli/show/metrics_text.hpp"
#include "client/connect/client.hpp"
#include "client/connect/pages.hpp"
#include "client/hints.hpp"

namespace muniment::cli {
namespace {

constexpr std::chrono::milliseconds connect_at_most{5'000};
constexpr std::chrono::milliseconds between_looks{2'000};  // some followers store their position once a second
constexpr std::int64_t lag_events_max = 100'000;
constexpr std::int64_t unsigned_events_max = 10'000;
constexpr std::size_t halted_shown = 5;

std::uint64_t count_of(std::int64_t number) { return static_cast<std::uint64_t>(std::max<std::int64_t>(number, 0)); }

struct Seen {
  std::int64_t size = 0;
  std::map<std::string, std::int64_t> followers;
};

Seen seen_in(const json::Value& status) {
  Seen seen;
  seen.size = status["log"]["size"].as_int().value_or(0);
  for (const json::Value follower : status["followers"]) seen.followers[follower.key()] = follower.as_int().value_or(0);
  // The publisher stores its position once a minute and reports its current position in the status.
  if (const auto published = status["checkpoint"]["size"].as_int()) seen.followers["publisher"] = *published;
  return seen;
}

// Reports followers that lag and do not advance, or lag far behind. The second sample is taken only if the first one
// shows a lag.
void look_at_followers(Findings& findings, Client& client, const Seen& first) {
  const auto behind = [](const Seen& seen) {
    return std::ranges::any_of(seen.followers, [&](const auto& follower) { return follower.second < seen.size; });
  };
  Seen second = first;
  if (behind(first)) {
    std::this_thread::sleep_for(between_looks);
    if (auto again = client.call("server.status", "{}")) second = seen_in(again->result());
  }
  bool well = true;
  for (const auto& [name, next] : second.followers) {
    const auto before = first.followers.find(name);
    // Events that were unread in the first sample should have been read by the second.
    const bool stuck = before != first.followers.end() && before->second == next && next < first.size;
    if (!stuck && second.size - next <= lag_events_max) continue;
    well = false;
    findings.warn("follower",
                  fmt::format("{} is {} behind{}", escape_for_terminal(name),
                              many(second.size - next, "event", "events"), stuck ? " and does not advance" : ""),
                  stuck ? "muniment status" : "muniment top", runbook("follower"));
  }
  if (well)
    findings.well("followers",
                  fmt::format("{} keep up with {}", second.followers.size(), many(second.size, "event", "events")));
}

constexpr std::string_view webhook_subject = "webhook ";  // printed before the text of a finding already
constexpr const char* install_encoder = "muniment model install && muniment down && muniment up";

void look_at_status(Findings& findings, const json::Value& status) {
  const std::string version = std::string(status["version"].string_or("?"));
  if (version != MUNIMENT_VERSION) {
    findings.warn("version",
                  fmt::format("munimentd is {}, this program {}", escape_for_terminal(version), MUNIMENT_VERSION),
                  "muniment down && muniment up", runbook("version"));
  }
  for (const json::Value text : status["degraded"]) {
    const std::string said = escape_for_terminal(preview(text.string_or(""), 400));
    if (said.starts_with("checkpoints outside")) {
      findings.warn("witness", said, "muniment status", runbook("witnesses"));
    } else if (said.starts_with(webhook_subject)) {
      const bool gone = said.find("410 Gone") != std::string::npos;
      findings.warn("webhook", said.substr(webhook_subject.size()),
                    gone ? "muniment down && muniment up" : "muniment status", runbook("webhooks"));
    } else if (text.string_or("").find("--continue-restored") != std::string::npos) {  // message of the daemon
      findings.broken("health", said, std::string(go_on_restored), runbook("backup"));
    } else {
      findings.broken("health", said, "muniment status", runbook("health"));
    }
  }
  for (const json::Value text : status["notes"]) {
    const std::string said = text.string_or("");
    const bool installable = said.ends_with("not installed");
    findings.note("search", escape_for_terminal(preview(said, 400)), installable ? install_encoder : "muniment status",
                  runbook("encoder"));
  }
  const json::Value checkpoint = status["checkpoint"];
  const std::int64_t newer = status["log"]["size"].as_int().value_or(0) - checkpoint["size"].as_int().value_or(0);
  if (checkpoint["signed"].as_bool().value_or(false) && newer > unsigned_events_max) {
    findings.warn("checkpoint", fmt::format("{} events are newer than the signed checkpoint", grouped(count_of(newer))),
                  "muniment status", runbook("checkpoints"));
  }
}

// A webhook that fails is in `degraded` too, with its problem.
void look_at_webhooks(Findings& findings, const json::Value& webhooks) {
  for (const json::Value webhook : webhooks) {
    const std::string name = escape_for_terminal(webhook["name"].string_or(""));
    const std::int64_t behind = webhook["behind"].as_int().value_or(0);
    if (const std::int64_t skipped = webhook["skipped"].as_int().value_or(0); skipped > 0) {
      findings.warn("webhook", fmt::format("{} has skipped {}", name, many(skipped, "event", "events")),
                    "muniment status", runbook("webhooks"));
    } else if (behind > lag_events_max) {
      findings.warn("webhook", fmt::format("{} is {} behind", name, many(behind, "event", "events")), "muniment status",
                    runbook("webhooks"));
    } else if (!webhook["problem"]) {
      findings.well("webhook",
                    fmt::format("{} receives messages at {}", name, escape_for_terminal(webhook["url"].string_or(""))));
    }
  }
}

// Root and the user of the daemon see all runs.
bool sees_all(const Client& client) {
  struct stat about {};
  return ::geteuid() == 0 ||
         (::stat(fmt::format("/proc/{}", client.daemon_pid()).c_str(), &about) == 0 && about.st_uid == ::geteuid());
}

// Halted runs of closed logs are counted separately, since they cannot be recovered.
void look_at_halted(Findings& findings, Client& client) {
  std::size_t halted = 0, closed = 0;
  const Status looked = each_item(
      client, "run.list", R"({"status":"halted","limit":1000})", "runs", [&](const json::Value& run) -> Result<bool> {
        if (run["log_no"]) {
          ++closed;
        } else if (++halted <= halted_shown) {
          const std::string run_id = escape_for_terminal(run["run_id"].string_or(""));
          findings.warn("runs", run_id + " is halted", "muniment recover " + run_id, runbook("run_halted"));
        }
        return true;
      });
  if (!looked)
    return findings.broken("runs", escape_for_terminal(looked.error().message), "muniment status",
                           runbook("unavailable"));
  if (halted > halted_shown) {
    findings.warn("runs", fmt::format("{} more runs are halted", grouped(halted - halted_shown)),
                  "muniment run list --status halted", runbook("run_halted"));
  }
  if (halted == 0) findings.well("runs", sees_all(client) ? "none is halted" : "none that you may see is halted");
  if (closed > 0) {
    findings.note("runs",
                  fmt::format("{} in closed logs {} halted and cannot be recovered: continue each in a new run",
                              grouped(closed), closed == 1 ? "was" : "were"),
                  "muniment run start NAME --agent AGENT --continues RUN", runbook("run_halted"));
  }
}

void look_at_metrics(Findings& findings, Client& client) {
  auto answer = client.call("server.metrics", "{}");
  if (!answer) return;
  const auto metrics = parse_metrics(answer->result()["text"].string_or(""));
  if (!metrics) return findings.broken("metrics", metrics.error().message, "muniment metrics", runbook("health"));
  for (const MetricSample& sample : metrics->samples) {
    if (sample.name != "muniment_keeper_signed_events") continue;
    const double newest = metrics->value("muniment_log_signed_events").value_or(0);
    if (newest - sample.value <= static_cast<double>(unsigned_events_max) && (sample.value > 0 || newest == 0))
      continue;
    findings.warn("witness",
                  fmt::format("{} has {} of {} signed events", escape_for_terminal(sample.label("keeper")),
                              grouped(count_of(static_cast<std::int64_t>(sample.value))),
                              grouped(count_of(static_cast<std::int64_t>(newest)))),
                  "muniment status", runbook("witnesses"));
  }
  if (const double restarts = metrics->value("muniment_search_restarts_total").value_or(0); restarts > 0) {
    findings.warn("search", fmt::format("the search child was restarted {} times", static_cast<std::int64_t>(restarts)),
                  "muniment status", runbook("search"));
  }
  const double open = metrics->value("process_open_fds").value_or(0),
               most = metrics->value("process_max_fds").value_or(1);
  if (open > 0.8 * most) {
    findings.warn("descriptors",
                  fmt::format("munimentd has {} of {} descriptors open", static_cast<std::int64_t>(open),
                              static_cast<std::int64_t>(most)),
                  "ulimit -n", runbook("over_budget"));
  }
}

// Returns the first folder on the path that this user may not traverse. Deeper folders cannot be examined.
std::optional<std::string> closed_folder(const std::string& path) {
  std::filesystem::path folder("/");
  for (const std::filesystem::path& name : std::filesystem::path(path).parent_path().relative_path()) {
    folder /= name;
    if (::faccessat(AT_FDCWD, folder.c_str(), X_OK, AT_EACCESS) != 0 && errno == EACCES) return folder.string();
  }
  return std::nullopt;
}

std::string listed_mend(std::uint32_t owner) {
  return fmt::format(
      "ask its owner (uid {}) to add {} to allowed_uids in muniment.toml, then: muniment down && muniment up", owner,
      ::geteuid());
}

// Another user may be refused by the folders on the path to the socket, or by the daemon, which checks the peer's uid.
void look_at_closed_way(Findings& findings, const Config& config, const std::string& refusal) {
  struct stat about {};
  if (const auto folder = closed_folder(config.socket)) {
    const bool seen = ::stat(folder->c_str(), &about) == 0;
    return findings.broken(
        "socket",
        fmt::format("{}{} does not let you reach {}; allowed_uids must also name uid {}", *folder,
                    seen ? fmt::format(" (mode {:o}, of uid {})", about.st_mode & 07777U, about.st_uid) : "",
                    config.socket, ::geteuid()),
        fmt::format("ask its owner to run: chmod o+x {}", shell_word(*folder)), runbook("access"));
  }
  const bool seen = ::stat(config.socket.c_str(), &about) == 0;
  const group* const entry =
      seen && about.st_gid != 0 && (about.st_mode & S_IWGRP) != 0 ? ::getgrgid(about.st_gid) : nullptr;
  findings.broken(
      "socket", refusal,
      entry != nullptr ? fmt::format("ask root to run: adduser USER {}", entry->gr_name) : listed_mend(about.st_uid),
      runbook("access"));
}

// The daemon answered with a refusal.
void look_at_refusal(Findings& findings, const Config& config, const Error& refusal) {
  struct stat about {};
  const bool denied = refusal.code == Errc::denied && ::stat(config.socket.c_str(), &about) == 0;
  findings.broken("socket", refusal.message, denied ? listed_mend(about.st_uid) : "muniment status",
                  runbook(denied ? "access" : "health"));
}

}  // namespace

bool look_at_daemon(Findings& findings, const Config& config) {
  std::error_code failed;
  const bool there = std::filesystem::exists(std::filesystem::symlink_status(config.socket, failed));
  auto client = Client::connect(config.socket, connect_at_most);
  if (!client) {
    if (client.error().code == Errc::denied) {
      look_at_closed_way(findings, config, client.error().message);
    } else {
      const bool stale = there && client.error().code == Errc::unavailable;
      findings.warn("socket", stale ? config.socket + " exists but no process listens" : "no daemon is running",
                    "muniment up", runbook("not_running"));
    }
    return false;
  }
  client->set_patience(connect_at_most);
  auto health = client->call("server.health", "{}");
  if (!health) {
    look_at_refusal(findings, config, health.error());
    return true;
  }
  findings.well("socket", fmt::format("munimentd (pid {}) answers at {}", client->daemon_pid(), config.socket));
  auto status = client->call("server.status", "{}");
  if (!status) {
    findings.broken("socket", status.error().message, "muniment status", runbook("health"));
    return true;
  }
  look_at_status(findings, status->result());
  look_at_webhooks(findings, status->result()["webhooks"]);
  const Seen seen = seen_in(status->result());
  if (!health->result()["ok"].as_bool().value_or(false)) return true;  // the remaining checks need Postgres
  look_at_followers(findings, *client, seen);
  look_at_halted(findings, *client);
  look_at_metrics(findings, *client);
  return true;
}

}  // namespace muniment::cli
