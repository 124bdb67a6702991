// `muniment doctor`: what can be found out from outside, with or without a daemon, and what mends it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config/config.hpp"
#include "cli/backup/set.hpp"

namespace muniment::cli {

enum class Level : std::uint8_t { well, note, warning, broken };  // note: well, and worth knowing

struct Finding {
  Level level = Level::well;
  std::string subject;  // data, disk, postgres, socket, config, log, …
  std::string text;
  std::string mend;  // a command, or empty
  std::string doc;   // docs/runbook.md#…, or empty
};

// "docs/runbook.md#disk". A test holds every one that stands in the code against the runbook.
std::string runbook(std::string_view anchor);

// What goes on from a restored log, whether a daemon reads it now or not.
inline constexpr std::string_view go_on_restored = "muniment down && muniment up --continue-restored";

class Findings {
 public:
  void well(std::string_view subject, std::string text) {
    all_.push_back({Level::well, std::string(subject), std::move(text), "", ""});
  }
  void note(std::string_view subject, std::string text, std::string mend, std::string doc) {
    all_.push_back({Level::note, std::string(subject), std::move(text), std::move(mend), std::move(doc)});
  }
  void warn(std::string_view subject, std::string text, std::string mend, std::string doc) {
    all_.push_back({Level::warning, std::string(subject), std::move(text), std::move(mend), std::move(doc)});
  }
  void broken(std::string_view subject, std::string text, std::string mend, std::string doc) {
    all_.push_back({Level::broken, std::string(subject), std::move(text), std::move(mend), std::move(doc)});
  }
  std::vector<Finding> take() && { return std::move(all_); }

 private:
  std::vector<Finding> all_;
};

// Reads only: it creates, starts and changes nothing.
std::vector<Finding> examine(const LoadedConfig& loaded);
std::string findings_json(const std::vector<Finding>& findings);

// ---- its parts ------------------------------------------------------------------------------------

// disk.cpp: space and inodes, and what the kernel offers.
void look_at_disk(Findings& findings, const Config& config);
void look_at_sandbox(Findings& findings);
// files.cpp: who may read what, what was left behind, what waits.
void look_at_secrets(Findings& findings, const Config& config, const std::string& config_file);
bool look_at_unfinished_restore(Findings& findings,
                                const Config& config);  // true: it is one, and nothing else in it means anything
void look_at_leftovers(Findings& findings, const Config& config, bool daemon_runs);
void look_at_spool(Findings& findings, const Config& config);
void look_at_backup(Findings& findings, const Config& config);
// postgres.cpp: the programs and the cluster on the disk, and the server if it answers.
void look_at_programs(Findings& findings, const Config& config);
void look_at_database(Findings& findings, const Config& config);
// daemon.cpp: what the daemon says of itself. True: it runs.
bool look_at_daemon(Findings& findings, const Config& config);

// The size of the newest checkpoint that was signed, where the private key is not in `own`, the folder of a log's own
// files; nullopt: it is, or nothing was signed.
std::optional<std::int64_t> signed_without_key(const std::string& own);
// What is said of such a log: "12 events; nothing newer: the private key is not here. Bring back …"
std::string signed_before_words(std::int64_t size, const std::string& own);

// <data>/last_backup, written by `muniment backup`: when, and where to.
struct LastBackup {
  std::string made_at;
  std::string path;
  DamagedFiles damaged;  // that are not in it
};
Status remember_backup(const std::string& data, const LastBackup& backup);

}  // namespace muniment::cli
