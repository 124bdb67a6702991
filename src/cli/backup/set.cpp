#include "cli/backup/set.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>

#include "base/crypto/sha256.hpp"
#include "base/json/json.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view mark_name = "MUNIMENT-BACKUP";
constexpr std::string_view mark_text = "muniment backup 1\n";
constexpr std::size_t manifest_bytes_max = std::size_t{1} << 30;  // the manifest lists every damaged file
constexpr std::size_t sums_bytes_max = std::size_t{4} << 30;      // about thirty million files
constexpr std::size_t piece_bytes = std::size_t{1} << 20;
constexpr std::int64_t format = 1;

Error other_folder(const std::string& folder) {
  return {Errc::conflict, folder + " is not empty and is not a folder of backups; choose another folder"};
}

std::string text_of(const BackupManifest& manifest) {
  json::Writer out;
  out.begin_object().member("format", format).member("name", manifest.name).member("made_at", manifest.made_at);
  out.member("version", manifest.version)
      .member("postgres_major", manifest.postgres_major)
      .member("log_no", int{manifest.log_no});
  out.key("logs").begin_array();
  for (const store::DumpedLog& log : manifest.logs) {
    out.begin_object()
        .member("log_no", int{log.log_no})
        .member("log_id", log.log_id.text())
        .member("size", log.size)
        .end_object();
  }
  out.end_array().key("roles").begin_array();
  for (const store::DumpedRole& role : manifest.roles) {
    out.begin_object().member("name", role.name).member("bypasses_rls", role.bypasses_rls).end_object();
  }
  out.end_array().member("sums_sha256", manifest.sums_hash).member("has_private_key", manifest.has_private_key);
  out.key("damaged");
  write_damaged(out, manifest.damaged);
  out.end_object();
  return std::move(out).text() + "\n";
}

Result<BackupManifest> manifest_of(const std::string& text, const std::string& path) {
  const auto broken = [&](std::string_view why) { return Error(Errc::corrupt, fmt::format("{}: {}", path, why)); };
  const auto document = json::parse(text);
  if (!document) return broken(document.error().message);
  const json::Value root = document->root();
  if (root["format"].as_int() != format) return broken("unknown format; install a newer Muniment");
  BackupManifest manifest;
  manifest.name = root["name"].string_or("");
  manifest.made_at = root["made_at"].string_or("");
  manifest.version = root["version"].string_or("");
  manifest.postgres_major = static_cast<int>(root["postgres_major"].as_int().value_or(0));
  manifest.log_no = static_cast<std::int16_t>(root["log_no"].as_int().value_or(0));
  manifest.sums_hash = root["sums_sha256"].string_or("");
  manifest.has_private_key = root["has_private_key"].as_bool().value_or(false);
  for (const json::Value log : root["logs"]) {
    const auto id = parse_uuid(log["log_id"].string_or(""));
    if (!id) return broken("a log without an id");
    manifest.logs.push_back(
        {static_cast<std::int16_t>(log["log_no"].as_int().value_or(0)), *id, log["size"].as_int().value_or(0)});
  }
  for (const json::Value role : root["roles"]) {
    manifest.roles.push_back({role["name"].string_or(""), role["bypasses_rls"].as_bool().value_or(false)});
  }
  for (const json::Value file : root["damaged"]) {
    manifest.damaged.push_back(
        {file["path"].string_or(""), file["problem"].string_or(""), file["archived"].as_bool().value_or(false)});
  }
  if (manifest.log() == nullptr) return broken("it names no log");
  return manifest;
}

Status sync_all(const Fd& folder, const std::string& name) {
  return ::syncfs(folder.get()) == 0 ? success() : Status(file_error("syncing", name, errno));
}

}  // namespace

DamagedFiles count_damaged(const std::vector<DamagedFile>& files) {
  DamagedFiles counted;
  for (const DamagedFile& file : files) ++(file.archived ? counted.archived : counted.artifacts);
  return counted;
}

std::string lacking_words(const DamagedFiles& files) {
  std::string text;
  if (files.artifacts > 0)
    text = fmt::format("{} {}", grouped(files.artifacts), files.artifacts == 1 ? "artifact" : "artifacts");
  if (files.artifacts > 0 && files.archived > 0) text += " and ";
  if (files.archived > 0)
    text += fmt::format("{} {} of archived bodies", grouped(files.archived), files.archived == 1 ? "file" : "files");
  return text + (files.artifacts + files.archived == 1 ? " is not in the backup" : " are not in the backup");
}

void write_damaged(json::Writer& out, const std::vector<DamagedFile>& files) {
  out.begin_array();
  for (const DamagedFile& file : files) {
    out.begin_object().member("path", file.path).member("problem", file.problem);
    if (file.archived) out.member("archived", true);
    out.end_object();
  }
  out.end_array();
}

const store::DumpedLog* BackupManifest::log() const {
  const auto found = std::ranges::find(logs, log_no, &store::DumpedLog::log_no);
  return found == logs.end() ? nullptr : &*found;
}

Result<BackupSet> BackupSet::open(const std::string& folder) {
  std::error_code failed;
  BackupSet set(fs::absolute(folder, failed).lexically_normal().string());
  if (::mkdir(set.folder_.c_str(), 0700) != 0 && errno != EEXIST) return file_error("making", set.folder_, errno);
  ASSIGN_OR_RETURN(set.root_, open_folder(set.folder_));
  const std::string mark = set.folder_ + "/" + std::string(mark_name);
  if (!fs::exists(mark, failed)) {
    if (!fs::is_empty(set.folder_, failed)) return other_folder(set.folder_);
    RETURN_IF_ERROR(write_file_durably(mark, mark_text));
  }
  set.lock_ = Fd(::open(mark.c_str(), O_RDONLY | O_CLOEXEC));
  if (!set.lock_.open()) return file_error("opening", mark, errno);
  if (::flock(set.lock_.get(), LOCK_EX | LOCK_NB) != 0)
    return Error(Errc::conflict, "another backup is being written to " + set.folder_);
  for (const char* below : {"/artifacts", "/generations"}) {
    if (::mkdir((set.folder_ + below).c_str(), 0700) != 0 && errno != EEXIST)
      return file_error("making", set.folder_ + below, errno);
  }
  return set;
}

Result<BackupSet> BackupSet::open_to_read(const std::string& folder) {
  std::error_code failed;
  BackupSet set(fs::absolute(folder, failed).lexically_normal().string());
  if (!fs::exists(set.folder_ + "/" + std::string(mark_name), failed)) {
    if (failed) return file_error("opening", set.folder_, failed.value());
    return Error(Errc::not_found, set.folder_ + " is not a folder of backups");
  }
  ASSIGN_OR_RETURN(set.root_, open_folder(set.folder_));
  return set;
}

Result<std::vector<std::string>> BackupSet::generations() const {
  std::vector<std::string> names;
  std::error_code failed;
  const std::string folder = folder_ + "/generations";
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    const std::string name = entry->path().filename();
    if (!name.starts_with('.')) names.push_back(name);
  }
  if (failed) return file_error("reading", folder, failed.value());
  std::ranges::sort(names);
  return names;
}

Result<BackupManifest> BackupSet::manifest(std::string_view generation) const {
  const std::string path = fmt::format("{}/generations/{}/manifest.json", folder_, generation);
  ASSIGN_OR_RETURN(const std::string text, read_file(path, manifest_bytes_max));
  ASSIGN_OR_RETURN(BackupManifest manifest, manifest_of(text, path));
  if (manifest.name != generation)
    return Error(Errc::corrupt, fmt::format("{}: it belongs to the generation {}", path, manifest.name));
  return manifest;
}

Result<FileSums> BackupSet::sums(const BackupManifest& manifest) const {
  const std::string path = fmt::format("{}/generations/{}/SHA256SUMS", folder_, manifest.name);
  ASSIGN_OR_RETURN(const std::string text, read_file(path, sums_bytes_max));
  if (to_hex(sha256(text)) != manifest.sums_hash)
    return Error(Errc::corrupt, path + " does not match the hash in the manifest");
  FileSums sums;
  std::string_view rest = text;
  while (const auto line = take_line(rest)) {
    constexpr std::size_t hash_end = 64, path_begin = 66;  // "<hash>  <path>"
    if (line->size() <= path_begin || !hash_from_hex(line->substr(0, hash_end)) ||
        !check_beneath(line->substr(path_begin))) {
      return Error(Errc::corrupt, path + ": invalid line");
    }
    sums.emplace(line->substr(path_begin), line->substr(0, hash_end));
  }
  return sums;
}

Status BackupSet::complete(const BackupManifest& manifest, const FileSums& sums) {
  const std::string begun = folder_ + "/generations/." + manifest.name,
                    finished = folder_ + "/generations/" + manifest.name;
  std::string text;
  for (const auto& [path, hash] : sums) text += hash + "  " + path + "\n";
  BackupManifest whole = manifest;
  whole.sums_hash = to_hex(sha256(text));
  RETURN_IF_ERROR(write_file_durably(begun + "/SHA256SUMS", text));
  RETURN_IF_ERROR(write_file_durably(begun + "/manifest.json", text_of(whole)));
  RETURN_IF_ERROR(sync_all(root_, folder_));
  if (::rename(begun.c_str(), finished.c_str()) != 0) return file_error("renaming", begun, errno);
  return sync_all(root_, folder_);
}

Result<std::size_t> BackupSet::prune(std::size_t keep) {
  ASSIGN_OR_RETURN(std::vector<std::string> names, generations());
  const std::size_t gone = names.size() > keep ? names.size() - keep : 0;
  for (std::size_t i = 0; i < gone; ++i) {
    // The generation is renamed first, so that a partly removed one is never mistaken for a backup.
    const std::string hidden = folder_ + "/generations/." + names[i];
    if (::rename((folder_ + "/generations/" + names[i]).c_str(), hidden.c_str()) != 0)
      return file_error("renaming", names[i], errno);
  }
  remove_unfinished();
  names.erase(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(gone));
  std::set<std::string> named;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const BackupManifest kept, manifest(name));
    ASSIGN_OR_RETURN(const FileSums files, sums(kept));
    for (const auto& [path, hash] : files) {
      if (path.starts_with("artifacts/")) named.insert(path);
    }
  }
  std::error_code failed;
  std::vector<fs::path> unnamed;
  for (const auto& entry : fs::recursive_directory_iterator(folder_ + "/artifacts", failed)) {
    if (entry.is_directory(failed)) continue;
    if (!named.contains(entry.path().lexically_relative(folder_).string())) unnamed.push_back(entry.path());
  }
  for (const fs::path& path : unnamed) {
    fs::remove(path, failed);
    // Removes empty parent folders up to the first that is not empty.
    for (fs::path above = path.parent_path(); above != folder_ + "/artifacts" && ::rmdir(above.c_str()) == 0;)
      above = above.parent_path();
  }
  return unnamed.size();
}

void BackupSet::remove_unfinished() const {
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder_ + "/generations", failed)) {
    if (entry.path().filename().string().starts_with('.')) fs::remove_all(entry.path(), failed);
  }
}

Result<CopiedFile> copy_file(const Fd& from, const std::string& path, const std::string& to, mode_t mode) {
  ASSIGN_OR_RETURN(const RegularFile file, open_regular_beneath(from, path));
  Fd written;
  if (!to.empty()) {
    written = Fd(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
    if (!written.open()) return file_error("making", to, errno);
  }
  Sha256 hash;
  CopiedFile copied;
  for (std::string piece(piece_bytes, '\0');;) {
    ASSIGN_OR_RETURN(const std::size_t got, read_into(file.fd, copied.size_bytes, piece, path));
    const std::string_view bytes(piece.data(), got);
    hash.update(bytes);
    if (written.open()) RETURN_IF_ERROR(write_all(written.get(), bytes, to));
    copied.size_bytes += static_cast<std::int64_t>(got);
    if (got < piece.size()) break;
  }
  copied.hash = to_hex(hash.finish());
  return copied;
}

Status make_folders_above(const std::string& path) {
  std::string folder = fs::path(path).parent_path();
  std::vector<std::string> missing;
  for (std::error_code failed; !folder.empty() && !fs::is_directory(folder, failed);
       folder = fs::path(folder).parent_path())
    missing.push_back(folder);
  for (auto made = missing.rbegin(); made != missing.rend(); ++made) {
    if (::mkdir(made->c_str(), 0700) != 0 && errno != EEXIST) return file_error("making", *made, errno);
  }
  return success();
}

}  // namespace muniment::cli
