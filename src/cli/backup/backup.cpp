#include "cli/backup/backup.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>
#include <unordered_map>

#include "base/clock.hpp"
#include "base/process/libpq_environment.hpp"
#include "base/text.hpp"
#include "cli/backup/archive.hpp"
#include "client/output.hpp"
#include "store/logs/log_place.hpp"
#include "store/postgres/postgres_cluster.hpp"

namespace muniment::cli {
namespace {

namespace fs = std::filesystem;

constexpr int attempts_max = 3;                   // an erasure during the copy requires a new attempt
constexpr std::chrono::seconds erasure_pause{2};  // typical duration of an erasure
constexpr std::size_t uri_bytes_max = 8'192;
constexpr mode_t file_mode = 0600;

// Returns a name such as "20261122T214011Z", which sorts by time.
std::string generation_name(Time now) {
  std::string name;
  for (const char c : format_time(now).substr(0, 19)) {
    if (c != '-' && c != ':') name += c;
  }
  return name + "Z";
}

class Making {
 public:
  Making(const BackupRequest& request, BackupSet& set) : request_(request), set_(set) {}

  Result<BackupReport> run() {
    ASSIGN_OR_RETURN(data_, open_folder(request_.data));
    RETURN_IF_ERROR(read_place());
    set_.remove_unfinished();
    RETURN_IF_ERROR(remember_former());
    for (int attempt = 1;; ++attempt) {
      RETURN_IF_ERROR(take());
      ASSIGN_OR_RETURN(const bool erased, store::erased_since(uri_, manifest().logs));
      const bool erasing = manifest().log()->erasing;
      if (!erased && !erasing) break;
      set_.remove_unfinished();
      RETURN_IF_ERROR(set_.prune(SIZE_MAX));  // removes copies of artifacts that are erased now
      if (attempt == attempts_max && erasing) {
        return Error(
            Errc::unavailable,
            "the log announces an erasure that is not finished, and a backup would keep the data to be erased. "
            "Retry; if this persists, restart the daemon, which finishes the erasure: docs/runbook.md (erasure)");
      }
      if (attempt == attempts_max)
        return Error(Errc::unavailable, "data was erased during the copy in three attempts. Retry");
      if (erasing) std::this_thread::sleep_for(erasure_pause);
    }
    RETURN_IF_ERROR(set_.complete(manifest(), sums_));
    return std::move(report_);
  }

 private:
  BackupManifest& manifest() { return report_.manifest; }
  std::string folder() const { return fmt::format("{}/generations/.{}", set_.folder(), report_.manifest.name); }
  std::string below_set(std::string_view path) const {
    return fmt::format("generations/{}/{}", report_.manifest.name, path);
  }

  Status read_place() {
    ASSIGN_OR_RETURN(uri_, read_file(request_.data + "/database.uri", uri_bytes_max));
    uri_.erase(uri_.find_last_not_of('\n') + 1);
    ignore_libpq_variables(uri_);
    ASSIGN_OR_RETURN(log_no_, store::read_log_no(request_.data));
    ASSIGN_OR_RETURN(programs_, store::find_postgres_programs(request_.data + "/postgres"));
    return success();
  }

  // Indexes the files of the newest backup by hash.
  Status remember_former() {
    ASSIGN_OR_RETURN(const auto names, set_.generations());
    if (names.empty()) return success();
    ASSIGN_OR_RETURN(const BackupManifest former, set_.manifest(names.back()));
    ASSIGN_OR_RETURN(const FileSums sums, set_.sums(former));
    for (const auto& [path, hash] : sums) {
      if (path.starts_with("generations/")) former_.emplace(hash, path);
    }
    return success();
  }

  // Creates one complete generation.
  Status take() {
    const Time now = Clock().now();
    report_ = {};
    sums_.clear();
    manifest().name = generation_name(now);
    for (int more = 2; fs::exists(fmt::format("{}/generations/{}", set_.folder(), manifest().name)); ++more) {
      manifest().name = fmt::format("{}-{}", generation_name(now), more);  // a backup of the same second exists
    }
    manifest().made_at = format_time(now);
    manifest().version = MUNIMENT_VERSION;
    manifest().log_no = log_no_;
    manifest().has_private_key = request_.with_private_keys;
    if (::mkdir(folder().c_str(), 0700) != 0) return file_error("making", folder(), errno);
    RETURN_IF_ERROR(keep_keys());
    ASSIGN_OR_RETURN(store::DumpedDatabase dumped, store::dump_database(uri_, programs_, folder() + "/database"));
    manifest().logs = std::move(dumped.logs);
    manifest().roles = std::move(dumped.roles);
    if (manifest().log() == nullptr)
      return Error(Errc::conflict, fmt::format("the database contains no log {}", log_no_));
    RETURN_IF_ERROR(keep_dump());
    RETURN_IF_ERROR(keep_artifacts(dumped.files));
    ASSIGN_OR_RETURN(
        const auto archived,
        archived_partitions(uri_,
                            log_no_));  // read before the files are copied; the files of these partitions already exist
    RETURN_IF_ERROR(keep_journals());
    return hold_archive(archived);
  }

  // The last signed size is read before the database, so that the database is never behind it.
  Status keep_keys() {
    for (int log_no = 1; log_no <= log_no_; ++log_no) {
      const std::string keys = store::log_folder(".", static_cast<std::int16_t>(log_no)).substr(1) + "/keys";
      std::error_code failed;
      for (const auto& entry : fs::directory_iterator(request_.data + keys, failed)) {
        const std::string name = entry.path().filename();
        const bool is_public = name == "log.pub" || name == "last_signed";
        // These tell where this data folder ended the log. The copy of its database ends later.
        if (name == "writer.key" || name == "last_written" || name == "documents.seal") continue;
        if (is_public || request_.with_private_keys) RETURN_IF_ERROR(keep_file((keys + "/" + name).substr(1)));
      }
    }
    return success();
  }

  Status keep_dump() {
    ASSIGN_OR_RETURN(const auto major, store::cluster_major(request_.data + "/postgres"));
    manifest().postgres_major = major.value_or(0);  // the version of an external server may be unknown
    std::error_code failed;
    ASSIGN_OR_RETURN(const Fd dump, open_folder(folder() + "/database"));
    for (const auto& entry : fs::directory_iterator(folder() + "/database", failed)) {
      const std::string name = entry.path().filename();
      ASSIGN_OR_RETURN(const CopiedFile file, copy_file(dump, name, "", 0));
      sums_[below_set("database/" + name)] = file.hash;
      report_.dump_bytes += file.size_bytes;
      if (linked_to_former(file, entry.path())) report_.dump_bytes_shared += file.size_bytes;
    }
    return failed ? Status(Error(Errc::system_error, "reading the dump: " + failed.message())) : success();
  }

  // Returns true if `path` is now a hard link to the file of the previous backup.
  bool linked_to_former(const CopiedFile& file, const std::string& path) {
    const auto equal = former_.find(file.hash);
    if (equal == former_.end()) return false;
    const std::string linked = path + ".linked";
    if (::link((set_.folder() + "/" + equal->second).c_str(), linked.c_str()) != 0) return false;
    struct stat about {};
    if (::stat(linked.c_str(), &about) != 0 || about.st_size != file.size_bytes ||
        ::rename(linked.c_str(), path.c_str()) != 0) {
      ::unlink(linked.c_str());
      return false;
    }
    return true;
  }

  // Copies a file of the data folder to data/ of this generation.
  Status keep_file(const std::string& path, const Fd* from = nullptr, const std::string& kept_as = "") {
    const std::string name = "data/" + (kept_as.empty() ? path : kept_as);
    const std::string to = folder() + "/" + name;
    RETURN_IF_ERROR(make_folders_above(to));
    auto copied = copy_file(from != nullptr ? *from : data_, path, to, file_mode);
    if (!copied && copied.error().code == Errc::not_found)
      return success();  // a journal that was completed in the meantime
    if (!copied) return std::move(copied).error();
    sums_[below_set(name)] = copied->hash;
    linked_to_former(*copied, to);
    return success();
  }

  Status keep_artifacts(const std::vector<store::NamedFile>& files) {
    Progress progress("artifacts", files.size());
    ASSIGN_OR_RETURN(const Fd root, open_folder(request_.data + "/artifacts"));
    std::size_t done = 0;
    for (const store::NamedFile& file : files) {
      RETURN_IF_ERROR(keep_artifact(root, file));
      progress.at(++done);
    }
    return success();
  }

  void count_kept(const std::string& name, const store::NamedFile& file) {
    sums_[name] = file.hash;
    ++report_.files;
    report_.bytes += file.size_bytes;
  }

  // A file gets its name in the backup only if it matches its row, so an existing file of the right size is not read
  // again.
  Status keep_artifact(const Fd& root, const store::NamedFile& file) {
    RETURN_IF_ERROR(check_beneath(file.path));
    const std::string name = "artifacts/" + file.path;
    const std::string place = set_.folder() + "/" + name;
    struct stat about {};
    bool there = ::lstat(place.c_str(), &about) == 0 && S_ISREG(about.st_mode) && about.st_size == file.size_bytes;
    if (there && request_.check) {
      const auto read = copy_file(set_.root(), name, "", 0);
      there = read && read->hash == file.hash;
    }
    if (there) {
      count_kept(name, file);
      return success();
    }
    RETURN_IF_ERROR(make_folders_above(place));
    const std::string fresh = set_.folder() + "/artifacts/.new";
    ::unlink(fresh.c_str());
    auto copied = copy_file(root, file.path, fresh, artifact_mode);
    std::string problem;
    if (!copied) {
      const Errc code = copied.error().code;
      if (code != Errc::not_found && code != Errc::corrupt) return std::move(copied).error();
      problem = copied.error().message;
    } else if (copied->hash != file.hash) {
      problem = fmt::format("the file has the hash {}, its row has {}", copied->hash, file.hash);
    }
    if (!problem.empty()) {
      ::unlink(fresh.c_str());
      manifest().damaged.push_back({file.path, std::move(problem)});
      return success();
    }
    if (::rename(fresh.c_str(), place.c_str()) != 0) return file_error("renaming", fresh, errno);
    count_kept(name, file);
    ++report_.new_files;
    report_.new_bytes += file.size_bytes;
    return success();
  }

  // Copies the journals of entries not yet in the database, the archived bodies and the configuration.
  Status keep_journals() {
    for (int log_no = 1; log_no <= log_no_; ++log_no) {
      const std::string below = store::log_folder(".", static_cast<std::int16_t>(log_no)).substr(1);
      for (const char* kind : {"/halts", "/redactions", "/archive"})
        RETURN_IF_ERROR(keep_folder((below + kind).substr(1)));
    }
    for (const char* name : {"log_no", "restored.json"}) RETURN_IF_ERROR(keep_file(name));
    if (request_.config_file.empty()) return success();
    std::error_code failed;
    const fs::path config = fs::canonical(request_.config_file, failed);  // resolves a symbolic link
    ASSIGN_OR_RETURN(const Fd folder, open_folder(config.parent_path()));
    return keep_file(config.filename(), &folder, "muniment.toml");
  }

  Status keep_folder(const std::string& path) {
    std::error_code failed, unknown;
    const std::string folder = request_.data + "/" + path;
    for (fs::recursive_directory_iterator entry(folder, failed), end; !failed && entry != end;
         entry.increment(failed)) {
      if (entry->is_regular_file(unknown)) RETURN_IF_ERROR(keep_file(entry->path().lexically_relative(request_.data)));
    }
    return failed && failed != std::errc::no_such_file_or_directory
               ? Status(file_error("reading", folder, failed.value()))
               : success();
  }

  // Checks the copies, since a restore uses them and not the files in the data folder.
  Status hold_archive(const std::vector<ArchivedPartition>& partitions) {
    ASSIGN_OR_RETURN(CheckedArchive checked, check_archive(uri_, partitions, folder() + "/data"));
    report_.archive_files = checked.files;
    for (DamagedFile& file : checked.damaged) {
      const std::string name = "data/" + file.path;
      ::unlink((folder() + "/" + name).c_str());
      sums_.erase(below_set(name));
      manifest().damaged.push_back(std::move(file));
    }
    return success();
  }

  const BackupRequest& request_;
  BackupSet& set_;
  Fd data_;
  std::string uri_, programs_;
  std::int16_t log_no_ = 1;
  std::unordered_map<std::string, std::string> former_;  // key: hash; value: path in the previous backup
  FileSums sums_;
  BackupReport report_;
};

}  // namespace

Result<BackupReport> make_backup(const BackupRequest& request, BackupSet& set) { return Making(request, set).run(); }

}  // namespace muniment::cli
