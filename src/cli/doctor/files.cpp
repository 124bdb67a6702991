// Checks of files in and near the data folder for doctor: permissions, leftover files and pending work.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

#include "audit/tree_files.hpp"
#include "base/clock.hpp"
#include "base/crypto/signed_note.hpp"
#include "base/files/file.hpp"
#include "base/ids.hpp"
#include "base/json/json.hpp"
#include "base/text.hpp"
#include "cli/doctor/doctor.hpp"
#include "store/logs/log_place.hpp"
#include "store/logs/restored.hpp"

namespace muniment::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t note_bytes_max = 64 * 1024;
constexpr std::int64_t micros_per_day = std::int64_t{86'400} * 1'000'000;
constexpr std::int64_t backup_days_max = 7;

// Returns the folder of the current log, or of log 1 if the current one is unknown, which look_at_log_no reports.
std::string own_folder(const Config& config) {
  const auto log_no = store::read_log_no(config.data);
  return store::log_folder(config.data, log_no ? *log_no : std::int16_t{1});
}

// Returns the names in a folder; empty if it is missing or unreadable.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  fs::directory_iterator entry(folder, failed);
  for (; !failed && entry != fs::directory_iterator(); entry.increment(failed))
    names.push_back(entry->path().filename().string());
  std::ranges::sort(names);
  return names;
}

std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t shown = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), shown); ++i)
    text += (i == 0 ? "" : ", ") + escape_for_terminal(preview(names[i], 100));
  return names.size() > shown ? text + fmt::format(" and {} more", names.size() - shown) : text;
}

// Checks that only the owner may read the file. Returns false if a problem was reported.
bool closed_to_others(Findings& findings, const std::string& path, std::string_view what, const std::string& anchor) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    findings.broken("secrets",
                    fmt::format("{} {} cannot be read: {}", what, path, std::generic_category().message(errno)),
                    "ls -l " + path, anchor);
    return false;
  }
  if ((status.st_mode & 0077U) == 0) return true;
  findings.broken("secrets",
                  fmt::format("{} {} is readable by other users (mode {:o})", what, path, status.st_mode & 0777U),
                  "chmod 600 " + path, anchor);
  return false;
}

void look_at_socket_mode(Findings& findings, const Config& config) {
  struct stat status {};
  if (::lstat(config.socket.c_str(), &status) != 0) return;
  if (!S_ISSOCK(status.st_mode)) {
    return findings.broken("socket", config.socket + " is not a socket", "ls -l " + config.socket, runbook("access"));
  }
  if ((status.st_mode & 0007U) == 0 || !config.allowed_uids.empty() || !config.allowed_group.empty()) return;
  findings.warn(
      "socket",
      fmt::format("{} is accessible to all users (mode {:o}), and neither allowed_uids nor allowed_group is set",
                  config.socket, status.st_mode & 0777U),
      "chmod 600 " + config.socket, runbook("access"));
}

void look_at_staging(Findings& findings, const Config& config, bool daemon_runs) {
  const std::string folder = config.data + "/artifacts/staging";
  std::vector<std::string> staged, strangers;
  for (std::string& name : names_in(folder)) (parse_uuid(name) ? staged : strangers).push_back(std::move(name));
  if (!strangers.empty()) {
    findings.warn("staged",
                  fmt::format("{} in {}: unknown files, not created by an upload", some_of(strangers), folder),
                  "ls -la " + folder, runbook("staged_file"));
  }
  std::size_t old = 0;
  for (const std::string& name : staged) {
    struct stat status {};
    if (::lstat((folder + "/" + name).c_str(), &status) == 0 &&
        Clock().now().micros / 1'000'000 - status.st_ctime > 3'600)
      ++old;
  }
  if (!daemon_runs && !staged.empty()) {
    findings.warn(
        "staged",
        fmt::format("{} uploads were interrupted when the daemon ended: the next start completes or removes them",
                    staged.size()),
        "muniment up", runbook("staged_file"));
  } else if (old > 0) {
    findings.warn("staged", fmt::format("{} of {} staged files are older than an hour", old, staged.size()),
                  "muniment down && muniment up", runbook("staged_file"));
  }
}

// Finds tiles truncated by a power cut. The next start rebuilds them from the events.
void look_at_tiles(Findings& findings, const std::string& own) {
  const audit::CutTiles cut = audit::cut_tiles(own + "/tiles");
  if (cut.paths.empty()) return;
  findings.warn(
      "tiles",
      fmt::format("{} files of {}/tiles have a wrong length ({}), as after a power cut: the next start rebuilds them",
                  cut.paths.size(), own, some_of(cut.paths)),
      "muniment down && muniment up", runbook("tiles"));
}

// Matches the names of unfinished files of write_file_durably. These names need no quoting in a shell.
bool is_temporary(std::string_view name) {
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return name.starts_with('.') && name.ends_with(".tmp") && name.find_first_not_of(allowed) == std::string_view::npos;
}

// Finds files of unfinished writes. They are unused, and those with unique names are never removed automatically.
void look_at_unfinished(Findings& findings, const Config& config, const std::string& own, bool daemon_runs) {
  const auto may_be_under_way = [&](const std::string& path) {
    struct stat status {};
    return ::lstat(path.c_str(), &status) != 0 ||
           (daemon_runs && Clock().now().micros / 1'000'000 - status.st_ctime <= 60);
  };
  if (const std::string file = own + "/tiles/.new"; !may_be_under_way(file)) {
    findings.note("unfinished", file + " is an unfinished write: the next checkpoint replaces it", "muniment up",
                  runbook("unfinished"));
  }
  std::vector<std::string> left;
  for (const std::string& folder :
       {config.data, own, own + "/keys", own + "/redactions", own + "/halts", own + "/archive"}) {
    for (const std::string& name : names_in(folder)) {
      const std::string path = folder + "/" + name;
      if (is_temporary(name) && !may_be_under_way(path) && std::ranges::find(left, path) == left.end())
        left.push_back(path);
    }
  }
  if (left.empty()) return;
  findings.note("unfinished", fmt::format("incomplete files left behind: {}. They are unused", some_of(left)),
                fmt::format("rm {}", fmt::join(left, " ")), runbook("unfinished"));
}

std::optional<std::int64_t> size_of_note(const std::string& path) {
  const auto text = read_file(path, note_bytes_max);
  const auto note = text ? Note::parse(*text) : Result<Note>(text.error());
  const auto checkpoint = note ? Checkpoint::parse(note->text) : Result<Checkpoint>(note.error());
  return checkpoint ? std::optional(checkpoint->size) : std::nullopt;
}

// A daemon stores the signed size before it publishes the checkpoint, so a short delay is allowed.
void look_at_published(Findings& findings, const std::string& own, bool daemon_runs) {
  const auto behind = [&]() -> std::optional<std::pair<std::int64_t, std::int64_t>> {
    const auto last = size_of_note(own + "/keys/last_signed"), published = size_of_note(own + "/tiles/checkpoint");
    return last && published && *published < *last ? std::optional(std::pair(*published, *last)) : std::nullopt;
  };
  auto sizes = behind();
  for (int looks = 0; daemon_runs && sizes && looks < 20; ++looks, sizes = behind())
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  if (!sizes) return;
  findings.warn(
      "tiles",
      fmt::format(
          "{}/tiles/checkpoint covers {} events, but {} are signed: tile readers cannot see the newest events. Restart the daemon to publish the newest checkpoint",
          own, grouped(static_cast<std::uint64_t>(sizes->first)), grouped(static_cast<std::uint64_t>(sizes->second))),
      daemon_runs ? "muniment down && muniment up" : "muniment up", runbook("published_checkpoint"));
}

// Finds erasures pending in closed logs, where they are never executed.
void look_at_lost_erasures(Findings& findings, const Config& config) {
  const auto log_no = store::read_log_no(config.data);
  for (std::int16_t closed = 1; log_no && closed < *log_no; ++closed) {
    const std::string folder = store::log_folder(config.data, closed) + "/redactions";
    const auto asked = names_in(folder);
    if (asked.empty()) continue;
    findings.warn(
        "erasure",
        fmt::format(
            "{} erasures are pending in the closed log {}: they are never executed, and their data still exists",
            asked.size(), closed),
        "ls -l " + shell_word(folder), runbook("erasure"));
  }
}

// A failed erasure is retried by the next erasure or start; one in progress is younger than this limit.
void look_at_waiting_erasures(Findings& findings, const std::string& own) {
  constexpr std::chrono::minutes being_carried_out{5};
  std::size_t waiting = 0;
  for (const std::string& name : names_in(own + "/redactions")) {
    std::error_code failed;
    const auto written = fs::last_write_time(own + "/redactions/" + name, failed);
    if (!failed && fs::file_time_type::clock::now() - written > being_carried_out) ++waiting;
  }
  if (waiting == 0) return;
  findings.warn("erasure",
                fmt::format("{} erasures are unfinished: the next erasure or a restart finishes them", waiting),
                "muniment down && muniment up", runbook("erasure"));
}

// Journals record unfinished operations, which the next start finishes.
void look_at_journals(Findings& findings, const std::string& own, bool daemon_runs) {
  if (daemon_runs) return look_at_waiting_erasures(findings, own);
  if (const auto begun = names_in(own + "/redactions"); !begun.empty()) {
    findings.warn("erasure", fmt::format("{} erasures are unfinished: the next start finishes them", begun.size()),
                  "muniment up", runbook("erasure"));
  }
  if (const auto halts = names_in(own + "/halts"); !halts.empty()) {
    findings.warn("halts", fmt::format("{} halts are not in the log yet: the next start appends them", halts.size()),
                  "muniment up", runbook("run_halted"));
  }
}

void look_at_restored(Findings& findings, const Config& config) {
  const auto restored = store::read_restored(config.data);
  if (!restored) {
    findings.broken("restore", restored.error().message, "ls -l " + config.data + "/restored.json", runbook("backup"));
  } else if (*restored) {
    findings.warn("restore",
                  fmt::format("the log was restored at {} events and is read-only",
                              grouped(static_cast<std::uint64_t>((*restored)->size))),
                  std::string(go_on_restored), runbook("backup"));
  }
}

void look_at_log_no(Findings& findings, const Config& config) {
  const auto log_no = store::read_log_no(config.data);
  if (!log_no)
    findings.broken("log_no", log_no.error().message + ": the current log is unknown", "cat " + config.data + "/log_no",
                    runbook("backup"));
}

// Returns whether the log is read-only. Such a log does not accept a new key either.
bool is_restored(const Config& config) {
  const auto restored = store::read_restored(config.data);
  const auto log_no = store::read_log_no(config.data);
  return restored && *restored && (*restored)->log_no == (log_no ? *log_no : std::int16_t{1});
}

void look_at_keys(Findings& findings, const Config& config) {
  const std::string own = own_folder(config);
  const std::string keys = own + "/keys";
  std::error_code failed;
  for (const char* name : {"/log.key", "/log.key.old", "/log.key.next"}) {
    if (fs::exists(keys + name, failed))
      closed_to_others(findings, keys + name, "the private key", runbook("checkpoints"));
  }
  const bool keyed = fs::exists(keys + "/log.key", failed);
  if (keyed && config.witnesses.empty())
    findings.note("witness", "none: an older copy of the database and the data folder together would not be detected",
                  "set witnesses", runbook("witnesses"));
  if (!fs::exists(own, failed) || keyed) return;
  if (is_restored(config)) {
    findings.note(
        "key",
        keys +
            "/log.key is missing: a restored log is not signed. The log that continues it gets its own key with muniment audit key init",
        std::string(go_on_restored), runbook("backup"));
  } else if (const auto size = signed_without_key(own); size || fs::exists(keys + "/log.pub", failed)) {
    const std::string so_far =
        size ? many(static_cast<std::int64_t>(*size), "event is", "events are") + " signed, and nothing newer"
             : "nothing newer is signed";
    findings.broken(
        "key",
        fmt::format(
            "{}/log.key is missing: {}. Create a new key only if this one is lost, since auditors need the new key",
            keys, so_far),
        fmt::format("restore {}/log.key, then: muniment down && muniment up", keys), runbook("checkpoints"));
  } else if (fs::exists(keys, failed)) {
    findings.warn("key", "the log has no key: a complete rewrite of the log would not be detected",
                  "muniment audit key init -o LOG.PUB", runbook("checkpoints"));
  }
}

}  // namespace

std::optional<std::int64_t> signed_without_key(const std::string& own) {
  std::error_code failed;
  return fs::exists(own + "/keys/log.key", failed) ? std::nullopt : size_of_note(own + "/keys/last_signed");
}

std::string signed_before_words(std::int64_t size, const std::string& own) {
  return fmt::format("{} events; nothing newer: the private key is missing. Restore {}/keys/log.key; if it is lost: {}",
                     grouped(static_cast<std::uint64_t>(size)), own, runbook("checkpoints"));
}

void look_at_secrets(Findings& findings, const Config& config, const std::string& config_file) {
  look_at_socket_mode(findings, config);
  look_at_keys(findings, config);
  for (const auto& [what, path] :
       {std::pair<std::string_view, const std::string&>("redis_password_file", config.redis_password_file),
        {"embed_key_file", config.embed_key_file},
        {"rerank_key_file", config.rerank_key_file}}) {
    if (!path.empty()) closed_to_others(findings, path, what, runbook("configuration"));
  }
  if (!config_file.empty() && without_password(config.database) != config.database) {
    closed_to_others(findings, config_file, "the configuration, which contains a password,", runbook("configuration"));
  }
}

bool look_at_unfinished_restore(Findings& findings, const Config& config) {
  std::error_code failed;
  if (!fs::exists(store::restoring_mark(config.data), failed)) return false;
  // Suggests moving the folder, since its contents may be needed to investigate the findings.
  findings.broken("restore",
                  "a restore into this folder failed: no daemon starts on it, and a new restore needs an empty folder",
                  fmt::format("mv {0} {0}.broken && muniment restore DIR --data {0}",
                              config.data.substr(0, config.data.find_last_not_of('/') + 1)),
                  runbook("backup"));
  return true;
}

void look_at_leftovers(Findings& findings, const Config& config, bool daemon_runs) {
  look_at_restored(findings, config);
  look_at_log_no(findings, config);
  look_at_staging(findings, config, daemon_runs);
  look_at_tiles(findings, own_folder(config));
  look_at_published(findings, own_folder(config), daemon_runs);
  look_at_unfinished(findings, config, own_folder(config), daemon_runs);
  look_at_lost_erasures(findings, config);
  look_at_journals(findings, own_folder(config), daemon_runs);
}

void look_at_spool(Findings& findings, const Config& config) {
  const auto folder = default_spool_folder(config.socket);
  if (!folder) return;
  std::size_t waiting = 0, refused = 0;
  for (const std::string& name : names_in(*folder)) {
    if (name.ends_with(".json")) ++waiting;
    if (name.ends_with(".refused")) ++refused;
  }
  if (waiting > 0) {
    findings.warn("spool", fmt::format("{} events of recorders are pending in {}", waiting, *folder),
                  "muniment record claude-code --flush", runbook("spool"));
  }
  if (refused > 0) {
    findings.warn("spool",
                  fmt::format("{} events of recorders were permanently refused and are kept in {}", refused, *folder),
                  "ls " + *folder, runbook("spool"));
  }
}

void look_at_backup(Findings& findings, const Config& config) {
  std::error_code failed;
  if (!fs::exists(config.data + "/postgres", failed) && config.database.empty()) return;
  const std::string fix = "muniment backup DIR";
  const auto text = read_file(config.data + "/last_backup", note_bytes_max);
  if (!text) return findings.warn("backup", "no backup of this data folder is recorded", fix, runbook("backup"));
  const auto document = json::parse(std::string_view(*text));
  const auto at = document ? parse_time(document->root()["made_at"].string_or("")) : std::nullopt;
  if (!at) return findings.warn("backup", config.data + "/last_backup cannot be read", fix, runbook("backup"));
  const std::string folder = document->root()["path"].string_or("");
  const std::string path = escape_for_terminal(folder);
  const std::int64_t age = std::max<std::int64_t>(Clock().now().micros - at->micros, 0);
  const auto lacking = [&](std::string_view name) {
    return static_cast<std::size_t>(std::max<std::int64_t>(document->root()[name].as_int().value_or(0), 0));
  };
  const DamagedFiles damaged{lacking("damaged"), lacking("damaged_archive")};
  const bool incomplete = damaged.artifacts + damaged.archived > 0;
  const std::string lacks =
      incomplete ? fmt::format(", and is incomplete: {}, damaged or missing here", lacking_words(damaged)) : "";
  const std::string said = fmt::format("the newest is {} old{}: {}", human_duration(age), lacks, path);
  if (age > backup_days_max * micros_per_day)
    return findings.warn("backup", said, "muniment backup " + fs::path(path).parent_path().parent_path().string(),
                         runbook("backup"));
  const bool there = fs::is_directory(folder, failed);
  if (failed && failed != std::errc::no_such_file_or_directory)
    return findings.note("backup", said + ": " + failed.message(), "ls -ld " + path, runbook("backup"));
  if (!there) return findings.warn("backup", said + ", which is now missing", fix, runbook("backup"));
  if (incomplete)
    return findings.warn("backup", said, "muniment-verify --data " + config.data,
                         runbook(damaged.artifacts > 0 ? "corrupt" : "archive"));
  findings.well("backup", said);
}

Status remember_backup(const std::string& data, const LastBackup& backup) {
  json::Writer out;
  out.begin_object()
      .member("made_at", backup.made_at)
      .member("path", backup.path)
      .member("damaged", backup.damaged.artifacts)
      .member("damaged_archive", backup.damaged.archived)
      .end_object();
  return write_file_durably(data + "/last_backup", std::move(out).text() + "\n");
}

}  // namespace muniment::cli
