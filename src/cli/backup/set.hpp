// A folder of backups (docs/runbook.md, backup):
//
//   MUNIMENT-BACKUP                         marks the folder; other folders are never written to
//   artifacts/runs/…                        the artifacts, stored once under their own paths; they never change
//   generations/20261122T214011Z/           one backup; it gets this name when it is complete
//     manifest.json                         the logs in the backup and the hash of SHA256SUMS
//     SHA256SUMS                            every file, including artifacts; sha256sum -c checks it in DIR
//     database/                             the output of pg_dump
//     data/                                 keys, configuration, journals and archived bodies
//
// A file that is equal to one of the previous generation is a hard link to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/files/file.hpp"
#include "base/json/json.hpp"
#include "base/result.hpp"
#include "store/postgres/database_copy.hpp"

namespace muniment::cli {

inline constexpr mode_t artifact_mode = 0400;  // artifacts never change

// A file that does not match its row and was not backed up.
struct DamagedFile {
  std::string path;  // relative to the artifact root; for archived bodies, relative to the data folder
  std::string problem;
  bool archived = false;  // a file of archived bodies (docs/format.md, Archive)
};

// Number of damaged files of each kind.
struct DamagedFiles {
  std::size_t artifacts = 0, archived = 0;
};
DamagedFiles count_damaged(const std::vector<DamagedFile>& files);
// returns "2 artifacts and 1 file of archived bodies are not in the backup"
std::string lacking_words(const DamagedFiles& files);
void write_damaged(json::Writer& out, const std::vector<DamagedFile>& files);  // writes a JSON array

struct BackupManifest {
  std::string name;  // name of the generation
  std::string made_at;
  std::string version;
  int postgres_major = 0;
  std::int16_t log_no = 1;  // number of the current log
  std::vector<store::DumpedLog> logs;
  std::vector<store::DumpedRole> roles;
  std::string sums_hash;
  bool has_private_key = false;
  std::vector<DamagedFile> damaged;

  const store::DumpedLog* log() const;
};

// path relative to the folder of backups → SHA-256 in hexadecimal
using FileSums = std::map<std::string, std::string>;

class BackupSet {
 public:
  // Opens the folder for writing; creates it if it is missing, and locks it. Errors: conflict if the folder is in use
  // or is not a folder of backups.
  static Result<BackupSet> open(const std::string& folder);
  // Opens the folder for reading. Errors: not_found.
  static Result<BackupSet> open_to_read(const std::string& folder);

  const std::string& folder() const { return folder_; }
  const Fd& root() const { return root_; }
  Result<std::vector<std::string>> generations() const;  // complete generations, oldest first
  Result<BackupManifest> manifest(std::string_view generation) const;
  // Errors: corrupt if they do not match the manifest, or name a path outside the folder.
  Result<FileSums> sums(const BackupManifest& manifest) const;

  // Completes the generation in generations/.NAME: syncs all files to disk, then renames it.
  Status complete(const BackupManifest& manifest, const FileSums& sums);
  // Removes all but the newest `keep` generations and the artifacts that only they name. Returns the number of removed
  // files.
  Result<std::size_t> prune(std::size_t keep);
  // Removes the remains of interrupted attempts.
  void remove_unfinished() const;

 private:
  explicit BackupSet(std::string folder) : folder_(std::move(folder)) {}
  std::string folder_;
  Fd root_;
  Fd lock_;
};

struct CopiedFile {
  std::string hash;  // hexadecimal
  std::int64_t size_bytes = 0;
};

// Reads the regular file `path` below `from`, writes it to `to` (a new file with `mode`) unless `to` is empty, and
// returns its size and hash. The copy is not synced.
Result<CopiedFile> copy_file(const Fd& from, const std::string& path, const std::string& to, mode_t mode);
// Creates the parent folders of `path`, inaccessible to other users.
Status make_folders_above(const std::string& path);

}  // namespace muniment::cli
