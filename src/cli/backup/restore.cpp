#include "cli/backup/restore.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "base/crypto/signed_note.hpp"
#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "base/process/libpq_environment.hpp"
#include "base/process/stop_signals.hpp"
#include "base/process/thread.hpp"
#include "cli/verifier.hpp"
#include "client/output.hpp"
#include "store/logs/log_place.hpp"
#include "store/logs/restored.hpp"
#include "store/postgres/postgres_cluster.hpp"
#include "store/postgres/private_postgres.hpp"

namespace muniment::cli {
namespace {

namespace fs = std::filesystem;

constexpr mode_t private_mode = 0600, public_mode = 0644;

mode_t mode_of(const std::string& name) {
  if (name.starts_with("artifacts/")) return artifact_mode;
  return name.ends_with("/log.pub") || name.ends_with("/last_signed") ? public_mode : private_mode;
}

// A signal stops the server and thereby every program that uses it.
class EndedBySignal {
 public:
  EndedBySignal(store::PrivatePostgres& server, int signals, std::atomic<bool>& came)
      : over_(::eventfd(0, EFD_CLOEXEC)) {
    thread_ = named_thread("signals", [this, &server, signals, &came] {
      pollfd watched[] = {{signals, POLLIN, 0}, {over_.get(), POLLIN, 0}};
      while (::poll(watched, 2, -1) < 0) {
      }
      if (watched[0].revents == 0) return;
      came = true;
      server.stop();
    });
  }
  ~EndedBySignal() {
    ::eventfd_write(over_.get(), 1);
    thread_.join();
  }

 private:
  const Fd over_;
  std::thread thread_;
};

class Restoring {
 public:
  Restoring(const RestoreRequest& request, const BackupSet& set)
      : request_(request), set_(set), data_(request.config.data) {}

  Result<RestoreReport> run() {
    ignore_libpq_variables(request_.config.database);
    RETURN_IF_ERROR(choose());
    RETURN_IF_ERROR(read_known());
    RETURN_IF_ERROR(check_key());
    RETURN_IF_ERROR(take_empty_folder());
    RETURN_IF_ERROR(copy_files());
    RETURN_IF_ERROR(set_config_aside());
    if (!request_.config.database.empty()) return fill(request_.config.database);
    StopSignals signals;
    auto report = fill_private(signals.fd());
    if (!signals.take() || report) return report;
    return Error(Errc::unavailable,
                 fmt::format("interrupted. {} is incomplete and no daemon will start on it; remove it", data_));
  }

 private:
  BackupManifest& manifest() { return report_.manifest; }
  const BackupManifest& manifest() const { return report_.manifest; }

  Status choose() {
    std::string name = request_.generation;
    if (name.empty()) {
      ASSIGN_OR_RETURN(const auto names, set_.generations());
      if (names.empty()) return Error(Errc::not_found, set_.folder() + " contains no complete backup");
      name = names.back();
    }
    ASSIGN_OR_RETURN(report_.manifest, set_.manifest(name));
    ASSIGN_OR_RETURN(sums_, set_.sums(manifest()));
    return success();
  }

  // Reads the length of the log from a checkpoint that was kept elsewhere.
  Status read_known() {
    if (request_.known.empty()) return success();
    ASSIGN_OR_RETURN(known_, read_input(request_.known, limits::note_bytes_max));
    const auto note = Note::parse(known_);
    if (!note) return Error(note.error()).within(request_.known);
    const auto checkpoint = Checkpoint::parse(note->text);
    if (!checkpoint) return Error(checkpoint.error()).within(request_.known);
    if (!checkpoint->origin.ends_with("/" + manifest().log()->log_id.text())) {
      return Error(Errc::conflict,
                   fmt::format("{} belongs to a different log: {}", request_.known, checkpoint->origin));
    }
    report_.known_size = checkpoint->size;
    if (!request_.complete || checkpoint->size <= manifest().log()->size) return success();
    return Error(
        Errc::conflict,
        fmt::format(
            "the log had {} events but this backup has only {}: --complete requires all of them. Omit --complete",
            checkpoint->size, manifest().log()->size));
  }

  // Checked before anything is restored: a file without a key of this log cannot verify any signature.
  Status check_key() const {
    if (request_.key.empty()) return success();
    ASSIGN_OR_RETURN(const std::vector<VerifierKey> keys, trusted_keys(request_.key));
    const std::string name_end = "/" + manifest().log()->log_id.text();
    const VerifierKey* first = nullptr;  // a witness key does not belong to a log
    for (const VerifierKey& key : keys) {
      if (key.type != KeyType::ed25519) continue;
      if (key.name.ends_with(name_end)) return success();
      if (first == nullptr) first = &key;
    }
    if (first == nullptr || request_.despite_findings) return success();
    return Error(Errc::conflict,
                 fmt::format("{} contains no key of the log {}; its first key belongs to a different log: {}",
                             request_.key, manifest().log()->log_id.text(), first->name));
  }

  Status take_empty_folder() {
    std::error_code failed;
    const bool filled = fs::exists(data_, failed) && !fs::is_empty(data_, failed);
    if (failed) return file_error("reading", data_, failed.value());
    if (filled) {
      return Error(
          Errc::conflict,
          data_ + " is not empty. A restore never overwrites: name another folder with --data, or move this one");
    }
    fs::create_directories(data_, failed);
    if (failed) return Error(Errc::denied, fmt::format("cannot create {}: {}", data_, failed.message()));
    ::chmod(data_.c_str(), 0700);
    return write_file_durably(store::restoring_mark(data_),
                              fmt::format("from {}/generations/{}\n", set_.folder(), manifest().name));
  }

  // Each file is compared with its hash while it is copied. The dump is only read, since pg_restore reads it in place.
  Status copy_files() {
    const std::string own = fmt::format("generations/{}/", manifest().name);
    Progress progress("files", sums_.size());
    std::size_t done = 0;
    for (const auto& [path, hash] : sums_) {
      std::string name = path;
      if (path.starts_with(own)) name = path.substr(own.size());
      const bool dump = name.starts_with("database/"), artifact = name.starts_with("artifacts/");
      if (name.starts_with("data/")) {
        name = name.substr(5);
      } else if (!dump && !artifact) {
        return Error(Errc::corrupt, fmt::format("{} is not a file of a data folder", path));
      }
      const std::string to = dump ? "" : data_ + "/" + name;
      if (!dump) RETURN_IF_ERROR(make_folders_above(to));
      ASSIGN_OR_RETURN(const CopiedFile copied, copy_file(set_.root(), path, to, mode_of(name)));
      if (copied.hash != hash)
        return Error(Errc::corrupt, fmt::format("{}/{} has the hash {}; expected {} from its backup", set_.folder(),
                                                path, copied.hash, hash));
      if (artifact) ++report_.files, report_.bytes += copied.size_bytes;
      progress.at(++done);
    }
    for (const char* folder : {"/artifacts", "/artifacts/runs"}) {
      if (::mkdir((data_ + folder).c_str(), 0700) != 0 && errno != EEXIST)
        return file_error("making", data_ + folder, errno);
    }
    return success();
  }

  // A configuration that names a database would make the daemon use that database instead of the restored one.
  Status set_config_aside() {
    const std::string file = data_ + "/muniment.toml";
    std::error_code failed;
    if (!fs::exists(file, failed)) return success();
    ConfigInputs inputs;
    inputs.flags.emplace_back("data", data_);
    if (load_config(inputs).values.database == request_.config.database) return success();
    report_.set_aside = file + ".restored";
    return ::rename(file.c_str(), report_.set_aside.c_str()) == 0 ? success()
                                                                  : Status(file_error("renaming", file, errno));
  }

  Result<RestoreReport> fill_private(int signals) {
    store::PrivatePostgresOptions options;
    options.data_dir = data_;
    options.notice = [](const std::string& text) { std::fprintf(stderr, "muniment: %s\n", text.c_str()); };
    options.interrupt = signals;
    ASSIGN_OR_RETURN(postgres_, store::PrivatePostgres::start(std::move(options)));
    const EndedBySignal watched(*postgres_, signals, interrupted_);
    return fill(postgres_->uri());
  }

  Result<RestoreReport> fill(const std::string& uri) {
    RETURN_IF_ERROR(restore_database(uri));
    if (!request_.complete) RETURN_IF_ERROR(mark_restored());
    return finish();
  }

  Status restore_database(const std::string& uri) {
    ASSIGN_OR_RETURN(const std::string programs, store::find_postgres_programs(data_ + "/postgres"));
    const std::string dump = fmt::format("{}/generations/{}/database", set_.folder(), manifest().name);
    RETURN_IF_ERROR(store::restore_database(uri, programs, dump, manifest().roles));
    return write_file_durably(data_ + "/database.uri", uri + "\n");
  }

  Status mark_restored() {
    const store::DumpedLog& log = *manifest().log();
    return store::write_restored(
        data_, {log.log_no, log.log_id, log.size, "", fmt::format("{}/generations/{}", set_.folder(), manifest().name),
                manifest().made_at, report_.known_size, known_});
  }

  Result<RestoreReport> finish() {
    std::vector<std::string> arguments{"--data", data_, "--json"};
    if (!request_.key.empty()) arguments.insert(arguments.end(), {"--key", request_.key});
    // A checkpoint beyond the end of the backup is not a finding here, since events after the backup are missing.
    const bool compared =
        report_.known_size > 0 && report_.known_size <= manifest().log()->size && request_.known != "-";
    if (compared) arguments.insert(arguments.end(), {"--checkpoint", request_.known});
    ASSIGN_OR_RETURN(report_.verify_exit_code, run_verifier(std::move(arguments), &report_.verify_report));
    const auto verdict = json::parse(std::string_view(report_.verify_report));
    report_.continues_known = compared && verdict && verdict->root()["continues"].size() > 0;
    if (interrupted_) return Error(Errc::unavailable, "interrupted during verification");
    if (postgres_) postgres_->stop();
    const bool consistent = report_.verify_exit_code == 0 || report_.verify_exit_code == 2;
    if (!consistent && !request_.despite_findings) {
      return Error(
          Errc::corrupt,
          fmt::format("{}. {} is kept, but no daemon will start on it. Restore another generation into another "
                      "folder, or this one with --despite-findings. See docs/runbook.md#backup",
                      verdict_words({report_.verify_exit_code, report_.verify_report}), data_));
    }
    ASSIGN_OR_RETURN(const Fd folder, open_folder(data_));
    if (::syncfs(folder.get()) != 0) return file_error("syncing", data_, errno);
    if (::unlink(store::restoring_mark(data_).c_str()) != 0)
      return file_error("removing", store::restoring_mark(data_), errno);
    if (::fsync(folder.get()) != 0) return file_error("syncing", data_, errno);
    return std::move(report_);
  }

  const RestoreRequest& request_;
  const BackupSet& set_;
  const std::string data_;
  FileSums sums_;
  std::string known_;
  std::unique_ptr<store::PrivatePostgres> postgres_;
  std::atomic<bool> interrupted_{false};  // set by a signal
  RestoreReport report_;
};

}  // namespace

Result<RestoreReport> restore_backup(const RestoreRequest& request, const BackupSet& set) {
  return Restoring(request, set).run();
}

}  // namespace muniment::cli
