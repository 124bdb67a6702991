// Implements `muniment doctor`, which diagnoses an instance from outside, with or without a daemon, and suggests fixes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config/config.hpp"
#include "cli/backup/set.hpp"

namespace muniment::cli {

enum class Level : std::uint8_t { well, note, warning, broken };  // note: information, not a problem

struct Finding {
  Level level = Level::well;
  std::string subject;  // data, disk, postgres, socket, config, log, …
  std::string text;
  std::string fix;  // command that fixes the problem, or empty
  std::string doc;  // docs/runbook.md#…, or empty
};

// Returns "docs/runbook.md#disk" for "disk". A test checks every anchor in the code against the runbook.
std::string runbook(std::string_view anchor);

// Command that continues from a restored log, whether or not a daemon is running.
inline constexpr std::string_view go_on_restored = "muniment down && muniment up --continue-restored";

class Findings {
 public:
  void well(std::string_view subject, std::string text) {
    all_.push_back({Level::well, std::string(subject), std::move(text), "", ""});
  }
  void note(std::string_view subject, std::string text, std::string fix, std::string doc) {
    all_.push_back({Level::note, std::string(subject), std::move(text), std::move(fix), std::move(doc)});
  }
  void warn(std::string_view subject, std::string text, std::string fix, std::string doc) {
    all_.push_back({Level::warning, std::string(subject), std::move(text), std::move(fix), std::move(doc)});
  }
  void broken(std::string_view subject, std::string text, std::string fix, std::string doc) {
    all_.push_back({Level::broken, std::string(subject), std::move(text), std::move(fix), std::move(doc)});
  }
  std::vector<Finding> take() && { return std::move(all_); }

 private:
  std::vector<Finding> all_;
};

// Read-only: creates, starts and changes nothing.
std::vector<Finding> examine(const LoadedConfig& loaded);
std::string findings_json(const std::vector<Finding>& findings);

// disk.cpp: space, inodes and kernel features.
void look_at_disk(Findings& findings, const Config& config);
void look_at_sandbox(Findings& findings);
// files.cpp: permissions, leftover files and pending work.
void look_at_secrets(Findings& findings, const Config& config, const std::string& config_file);
bool look_at_unfinished_restore(
    Findings& findings,
    const Config& config);  // returns true after a failed restore, for which no other check of the folder applies
void look_at_leftovers(Findings& findings, const Config& config, bool daemon_runs);
void look_at_spool(Findings& findings, const Config& config);
void look_at_backup(Findings& findings, const Config& config);
// postgres.cpp: the programs, the cluster on disk, and the server if it answers.
void look_at_programs(Findings& findings, const Config& config);
void look_at_database(Findings& findings, const Config& config);
// daemon.cpp: the state that the daemon reports. Returns true if the daemon runs.
bool look_at_daemon(Findings& findings, const Config& config);

// Returns the size of the newest signed checkpoint if the private key is missing from `own`, the folder of the log's
// files; nullopt if the key exists or nothing was signed.
std::optional<std::int64_t> signed_without_key(const std::string& own);
// Returns the message about such a log: "12 events; nothing newer: the private key is missing. Restore …"
std::string signed_before_words(std::int64_t size, const std::string& own);

// Contents of <data>/last_backup, written by `muniment backup`: time and path of the backup.
struct LastBackup {
  std::string made_at;
  std::string path;
  DamagedFiles damaged;  // files missing from the backup
};
Status remember_backup(const std::string& data, const LastBackup& backup);

}  // namespace muniment::cli
