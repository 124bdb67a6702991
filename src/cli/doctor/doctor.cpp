#include "cli/doctor/doctor.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/config/prices.hpp"
#include "base/crypto/dsse.hpp"
#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "bridge/local_rules.hpp"
#include "client/connect/autostart.hpp"
#include "evidence/completion/policy.hpp"
#include "webhook/message.hpp"

namespace muniment::cli {
namespace {

namespace fs = std::filesystem;

// Returns whether the data folder belongs to another user and this user may not read it.
bool is_strangers(const Config& config) {
  struct stat status {};
  return ::geteuid() != 0 && ::stat(config.data.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid != ::geteuid();
}

void look_at_config(Findings& findings, const LoadedConfig& loaded) {
  for (const Error& problem : loaded.problems) {
    findings.broken("config", problem.message, "muniment config check", runbook("configuration"));
  }
  if (!loaded.unread.empty()) {
    const std::string text =
        fmt::format("{} is not readable by you (uid {}): the following checks use defaults, environment and flags",
                    loaded.unread, ::geteuid());
    const std::string fix = "ls -l " + shell_word(loaded.unread);
    // In a user's own folder this is an error, because a daemon started there fails.
    return is_strangers(loaded.values) ? findings.note("config", text, fix, runbook("configuration"))
                                       : findings.broken("config", text, fix, runbook("configuration"));
  }
  if (loaded.problems.empty()) {
    findings.well("config", loaded.file.empty() ? "defaults, environment and flags" : loaded.file);
  }
}

// Reports a file that a setting names.
template <class T>
void report_file(Findings& findings, const Config& config, std::string_view subject, const std::string& path,
                 const Result<T>& contents) {
  if (contents) return findings.well(subject, path);
  const std::string fix = "muniment config check";
  // The daemon of another user may read a file that this user may not read.
  return contents.error().code == Errc::denied && is_strangers(config)
             ? findings.note(subject, contents.error().message, fix, runbook("configuration"))
             : findings.broken(subject, contents.error().message, fix, runbook("configuration"));
}

void look_at_named_files(Findings& findings, const Config& config) {
  if (const std::string& path = config.completion_policy; !path.empty())
    report_file(findings, config, "policy", path, evidence::completion::Policies::read(path));
  if (const std::string& path = config.attestation_keys; !path.empty())
    report_file(findings, config, "keys", path, read_trusted_keys(path));
  if (const std::string& path = config.price_list; path.starts_with('/'))
    report_file(findings, config, "prices", path, read_price_list(path, config.prices));
  const char* const no_environment[] = {nullptr};
  if (!config.sanitiser_rules.empty() || !config.sanitiser_secrets.empty()) {
    report_file(findings, config, "sanitiser", "the rules and secrets are valid",
                bridge::read_local_rules(config, no_environment));
  }
  if (const auto webhooks = webhook::read_webhooks(config.webhooks); !webhooks || !webhooks->empty())
    report_file(findings, config, "webhook", "types and secrets are valid", webhooks);
}

void look_at_data(Findings& findings, const Config& config) {
  struct stat status {};
  if (::stat(config.data.c_str(), &status) != 0) {
    std::string text = fmt::format("{}: {}", config.data, std::strerror(errno));
    if (errno == ENOENT) return findings.warn("data", std::move(text), "muniment up", runbook("data_folder"));
    return findings.broken("data", std::move(text), "ls -ld " + config.data, runbook("data_folder"));
  }
  const auto mode = status.st_mode & 0777U;
  if (!S_ISDIR(status.st_mode)) {
    findings.broken("data", config.data + " is not a folder", "muniment --data DIR up", runbook("data_folder"));
  } else if (is_strangers(config)) {
    const struct passwd* const owner = ::getpwuid(status.st_uid);
    findings.note("data",
                  fmt::format("{} belongs to uid {}, you are uid {}: files readable only by the owner are not checked",
                              config.data, status.st_uid, ::geteuid()),
                  fmt::format("sudo -u {} muniment --data {} doctor",
                              owner != nullptr ? owner->pw_name : fmt::format("'#{}'", status.st_uid), config.data),
                  runbook("data_folder"));
  } else if ((mode & 0006U) != 0) {
    findings.broken("data", fmt::format("{} is accessible to all users (mode {:o})", config.data, mode),
                    "chmod o-rwx " + config.data, runbook("data_folder"));
  } else {
    findings.well("data", fmt::format("{} (mode {:o})", config.data, mode));
  }
}

void look_at_daemon_program(Findings& findings) {
  const auto daemon = find_daemon();
  if (!daemon) return findings.broken("munimentd", daemon.error().message, "scripts/setup", runbook("setup"));
  findings.well("munimentd", *daemon);
}

void look_at_log(Findings& findings, const Config& config) {
  std::error_code failed;
  const std::string path = config.data + "/munimentd.log";
  const std::uintmax_t size = fs::file_size(path, failed);
  if (failed) return;
  const std::string text =
      fmt::format("{} ({}), level {}, {}", path, human_size(size), config.log_level, config.log_format);
  // The daemon checks its log once a minute.
  if (size > 2 * static_cast<std::uintmax_t>(limits::daemon_log_bytes_max)) {
    return findings.warn("log", text + ": it is not rotated", "truncate -s 0 " + path, runbook("daemon_log"));
  }
  findings.well("log", text);
}

}  // namespace

std::string runbook(std::string_view anchor) { return fmt::format("docs/runbook.md#{}", anchor); }

std::vector<Finding> examine(const LoadedConfig& loaded) {
  const Config& config = loaded.values;
  Findings findings;
  look_at_config(findings, loaded);
  look_at_named_files(findings, config);
  look_at_data(findings, config);
  const bool inside = !is_strangers(config);
  if (inside && look_at_unfinished_restore(findings, config)) {
    look_at_disk(findings, config);
    return std::move(findings).take();
  }
  if (inside) look_at_secrets(findings, config, loaded.file);
  look_at_disk(findings, config);
  look_at_sandbox(findings);
  look_at_daemon_program(findings);
  look_at_programs(findings, config);
  const bool runs = look_at_daemon(findings, config);
  if (inside || !config.database.empty()) look_at_database(findings, config);
  if (inside) look_at_leftovers(findings, config, runs);
  look_at_spool(findings, config);
  if (inside) look_at_backup(findings, config);
  look_at_log(findings, config);
  return std::move(findings).take();
}

std::string findings_json(const std::vector<Finding>& findings) {
  constexpr std::string_view levels[] = {"ok", "note", "warning", "broken"};
  const auto count = [&](Level level) { return std::ranges::count(findings, level, &Finding::level); };
  json::Writer writer;
  writer.begin_object()
      .member("broken", count(Level::broken))
      .member("warnings", count(Level::warning))
      .key("findings")
      .begin_array();
  for (const Finding& finding : findings) {
    writer.begin_object().member("subject", finding.subject);
    writer.member("level", levels[static_cast<std::size_t>(finding.level)]).member("text", finding.text);
    writer.member("fix", finding.fix).member("doc", finding.doc).end_object();
  }
  writer.end_array().end_object();
  return std::move(writer).text();
}

}  // namespace muniment::cli
