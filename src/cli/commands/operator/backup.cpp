// Implements the commands backup and restore.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>

#include "base/text.hpp"
#include "cli/backup/backup.hpp"
#include "cli/backup/restore.hpp"
#include "cli/commands.hpp"
#include "cli/doctor/doctor.hpp"
#include "cli/verifier.hpp"
#include "client/output.hpp"
#include "store/logs/log_place.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t damaged_shown = 50;  // a missing folder can amount to many files

struct BackupOptions {
  std::string folder;
  std::size_t keep = 0;
  bool with_private_keys = false;
  bool check = false;
};

void declare_backup(CLI::App& command, BackupOptions& options) {
  command.add_option("DIR", options.folder, "Folder of backups; created if missing")->required();
  command.add_option("--keep", options.keep, "Backups to keep; older ones are removed after a complete backup")
      ->type_name("N")
      ->check(CLI::Range(1, 100'000));
  command.add_flag("--with-private-key", options.with_private_keys,
                   "Include the private signing keys; anyone with them can sign");
  command.add_flag("--check", options.check, "Check files already in the backup and copy damaged ones again");
}

std::uint64_t count(std::int64_t number) { return static_cast<std::uint64_t>(number); }

std::string json_of(const BackupReport& report, const std::string& path, std::size_t removed) {
  const BackupManifest& manifest = report.manifest;
  json::Writer out;
  out.begin_object().member("generation", manifest.name).member("path", path).member("made_at", manifest.made_at);
  out.member("log_id", manifest.log()->log_id.text()).member("events", manifest.log()->size);
  out.member("files", report.files)
      .member("bytes", report.bytes)
      .member("new_files", report.new_files)
      .member("new_bytes", report.new_bytes);
  out.member("archive_files", report.archive_files)
      .member("dump_bytes", report.dump_bytes)
      .member("dump_bytes_shared", report.dump_bytes_shared);
  out.member("has_private_key", manifest.has_private_key).member("removed_files", removed).key("damaged");
  write_damaged(out, manifest.damaged);
  out.end_object();
  return std::move(out).text();
}

void print_backup(const Output& out, const BackupReport& report, const std::string& path) {
  const BackupManifest& manifest = report.manifest;
  out.line(fmt::format("backup     {}", out.safe(path)));
  out.line(fmt::format("log        {}  {} events", manifest.log()->log_id.text().substr(0, 8),
                       grouped(count(manifest.log()->size))));
  out.line(fmt::format("database   {} dumped, {} of it unchanged since the previous backup and stored once",
                       human_size(count(report.dump_bytes)), human_size(count(report.dump_bytes_shared))));
  out.line(fmt::format("files      {} ({}), {} of them new ({})", grouped(report.files),
                       human_size(count(report.bytes)), grouped(report.new_files),
                       human_size(count(report.new_bytes))));
  if (report.archive_files > 0)
    out.line(fmt::format("archive    {} files of archived bodies, checked against their events",
                         grouped(report.archive_files)));
  const DamagedFiles damaged = count_damaged(manifest.damaged);
  const auto incomplete = [&](std::size_t lacking, std::size_t there, std::string_view what) {
    if (lacking == 0) return;
    out.line(fmt::format("{} {} of the log's {} {} {} not in it", out.tone(Tone::red, "INCOMPLETE"), grouped(lacking),
                         grouped(there + lacking), what, lacking == 1 ? "is" : "are"));
  };
  incomplete(damaged.artifacts, report.files, "artifacts");
  incomplete(damaged.archived, report.archive_files, "files of archived bodies");
  out.line(manifest.has_private_key ? "keys       public and private: protect this folder like the private keys"
                                    : "keys       public only; add the private key with --with-private-key");
}

void print_damaged(const Output& out, const std::vector<DamagedFile>& files, const std::string& path) {
  for (std::size_t i = 0; i < std::min(files.size(), damaged_shown); ++i) {
    out.line(fmt::format("{}    {}: {}", out.tone(Tone::red, "damaged"), out.one_line(files[i].path),
                         out.one_line(files[i].problem)));
  }
  if (files.size() > damaged_shown)
    out.line(
        fmt::format("           and {} more: {}/manifest.json", grouped(files.size() - damaged_shown), out.safe(path)));
}

Status verdict_on(const std::vector<DamagedFile>& files, bool was_to_prune) {
  if (files.empty()) return success();
  const DamagedFiles damaged = count_damaged(files);
  return Error(
      Errc::corrupt,
      fmt::format("the backup was written, but {}: damaged or missing here. See docs/runbook.md#{}{}",
                  lacking_words(damaged), damaged.artifacts > 0 ? "corrupt" : "archive",
                  was_to_prune ? ". --keep removed nothing, since an older backup may have the missing files" : ""));
}

// A backup inside the data folder would be lost together with it and would be scanned as part of it.
Status check_elsewhere(const std::string& folder, const std::string& data) {
  std::error_code failed;
  const std::filesystem::path to = std::filesystem::weakly_canonical(folder, failed),
                              from = std::filesystem::weakly_canonical(data, failed);
  if (failed || std::mismatch(from.begin(), from.end(), to.begin(), to.end()).first != from.end()) return success();
  return Error(
      Errc::invalid_argument,
      fmt::format(
          "{} is inside the data folder {} that it would back up. Choose a folder outside it, best on another disk",
          folder, data));
}

Status back_up(Session& session, const BackupOptions& options) {
  RETURN_IF_ERROR(session.find_place());
  const LoadedConfig loaded = load_config(session.config_inputs());
  if (!loaded.problems.empty()) return loaded.problems.front();
  if (!loaded.unread.empty())
    return Error(
        Errc::denied,
        loaded.unread +
            " is part of a backup but is not readable by you. Run backup as root or as the owner of the data folder");
  RETURN_IF_ERROR(check_elsewhere(options.folder, loaded.values.data));
  // Postgres must run. A mistyped data folder is not an instance, and backup does not create one.
  std::error_code failed;
  const bool there = std::filesystem::exists(loaded.values.data + "/database.uri", failed) ||
                     std::filesystem::exists(loaded.values.data + "/postgres", failed);
  RETURN_IF_ERROR(there ? session.client() : session.running_client());
  ASSIGN_OR_RETURN(BackupSet set, BackupSet::open(options.folder));
  const BackupRequest request{loaded.values.data, loaded.file, options.with_private_keys, options.check};
  ASSIGN_OR_RETURN(const BackupReport report, make_backup(request, set));
  std::size_t removed = 0;
  // Records the time for doctor. The backup is complete even if this fails.
  const Status remembered =
      remember_backup(loaded.values.data,
                      {report.manifest.made_at,
                       std::filesystem::absolute(fmt::format("{}/generations/{}", set.folder(), report.manifest.name))
                           .lexically_normal()
                           .string(),
                       count_damaged(report.manifest.damaged)});
  if (!remembered) fmt::print(stderr, "muniment: {}\n", escape_for_terminal(remembered.error().message));
  // An older backup may have the files that this one lacks.
  if (options.keep > 0 && report.manifest.damaged.empty()) {
    ASSIGN_OR_RETURN(removed, set.prune(options.keep));
  }
  const std::string path = fmt::format("{}/generations/{}", set.folder(), report.manifest.name);
  const Output& out = session.out();
  if (session.options.json) {
    out.json_line(json_of(report, path, removed));
  } else {
    print_backup(out, report, path);
    print_damaged(out, report.manifest.damaged, path);
  }
  return verdict_on(report.manifest.damaged, options.keep > 0);
}

struct RestoreOptions {
  std::string folder, generation, key, known;
  bool complete = false;
  bool despite_findings = false;
};

void declare_restore(CLI::App& command, RestoreOptions& options) {
  command.add_option("DIR", options.folder, "Folder of backups")->required();
  command.add_option("--generation", options.generation, "Backup to restore (default: the newest)")->type_name("NAME");
  command.add_option("--key", options.key, "File of trusted verifier keys")->type_name("FILE");
  command.add_option("--known", options.known, "Signed checkpoint kept elsewhere; shows how long the log was")
      ->type_name("FILE");
  command.add_flag("--complete", options.complete, "Continue the same log, if nothing was recorded since the backup");
  command.add_flag("--despite-findings", options.despite_findings,
                   "Keep the restored folder even if verification finds problems");
}

std::string own_folder_of(const RestoreReport& report, const Config& config) {
  return store::log_folder(config.data, report.manifest.log_no);
}

std::string json_of(const RestoreReport& report, const Config& config) {
  json::Writer out;
  out.begin_object()
      .member("data", config.data)
      .member("generation", report.manifest.name)
      .member("made_at", report.manifest.made_at);
  out.member("log_id", report.manifest.log()->log_id.text()).member("events", report.manifest.log()->size);
  out.member("files", report.files)
      .member("bytes", report.bytes)
      .member("known_size", report.known_size)
      .member("continues_known", report.continues_known);
  out.member("config_set_aside", report.set_aside);
  if (const auto size = signed_without_key(own_folder_of(report, config))) out.member("signed_before", *size);
  if (json::parse(std::string_view(report.verify_report))) out.raw_member("verify", report.verify_report);
  return std::move(out.end_object()).text();
}

void print_restore(const Output& out, const RestoreReport& report, const RestoreOptions& options,
                   const Config& config) {
  const std::int64_t size = report.manifest.log()->size;
  out.line(fmt::format("restored   {}", out.safe(config.data)));
  out.line(fmt::format("log        {}  {} events, as of {}", report.manifest.log()->log_id.text().substr(0, 8),
                       grouped(count(size)), report.manifest.made_at));
  out.line(fmt::format("files      {} ({})", grouped(report.files), human_size(count(report.bytes))));
  out.line(fmt::format("verify     {}", out.one_line(verdict_words({report.verify_exit_code, report.verify_report}))));
  if (const auto verdict = json::parse(std::string_view(report.verify_report));
      verdict && verdict->root()["verdict"].string_or("") == "unsigned_tail")
    out.line("           normal for a log in use: the events after its last checkpoint are not signed");
  if (!report.set_aside.empty()) {
    out.line(fmt::format("config     names another database; moved to {}", out.safe(report.set_aside)));
  }
  if (report.known_size > size) {
    out.line(fmt::format("missing    at least {} events: the log had {} when that checkpoint was signed",
                         grouped(count(report.known_size - size)), grouped(count(report.known_size))));
  }
  if (report.known_size > 0 && report.known_size <= size) {
    out.line(
        report.continues_known
            ? fmt::format("known      consistent with the given checkpoint at {} events: nothing before it was changed",
                          grouped(count(report.known_size)))
            : fmt::format("known      not compared with the given checkpoint at {} events",
                          grouped(count(report.known_size))));
  }
  const std::string up = out.advised("muniment up"), on = out.advised("muniment up --continue-restored");
  const std::string own = own_folder_of(report, config);
  if (const auto before = signed_without_key(own); before && options.complete)
    out.line("signed     " + out.safe(signed_before_words(*before, own)));
  if (options.complete) return out.line("next       " + up);
  out.line(
      fmt::format("next       {:<{}}    opens it read-only, since events after the backup are unknown", up, on.size()));
  out.line(fmt::format("           {}    continues in a new log that names this one", on));
}

Status restore(Session& session, const RestoreOptions& options) {
  ASSIGN_OR_RETURN(const Config config, session.config());
  ASSIGN_OR_RETURN(const BackupSet set, BackupSet::open_to_read(options.folder));
  const RestoreRequest request{config,        options.generation, options.key,
                               options.known, options.complete,   options.despite_findings};
  ASSIGN_OR_RETURN(const RestoreReport report, restore_backup(request, set));
  if (session.options.json) {
    session.out().json_line(json_of(report, config));
  } else {
    print_restore(session.out(), report, options, config);
  }
  return success();
}

}  // namespace

void add_backup_commands(CLI::App& app, Session& session) {
  add_command(session, app, "backup", "Back up the log, its files and its configuration", declare_backup, back_up);
  add_command(session, app, "restore", "Restore a backup into an empty data folder and verify it", declare_restore,
              restore);
}

}  // namespace muniment::cli
