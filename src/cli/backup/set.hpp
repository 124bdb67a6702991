// A folder of backups (docs/runbook.md, backup):
//
//   MUNIMENT-BACKUP                         marks it; a folder of something else is never written to
//   artifacts/runs/…                        the artifacts, once, under the names that they have: they never change
//   generations/20261122T214011Z/           one backup. It has this name only when it is complete
//     manifest.json                         what it is of, and the hash of SHA256SUMS
//     SHA256SUMS                            every file of it, artifacts too: cd DIR && sha256sum -c
//     generations/…/SHA256SUMS database/                             what pg_dump wrote data/ keys, configuration,
//     journals, archived bodies, as in the data folder
//
// A file of a generation that is equal to one of the generation before is that file (a hard link).
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

inline constexpr mode_t artifact_mode = 0400;  // it never changes, here as there

// A file that could not be kept as what its row says.
struct DamagedFile {
  std::string path;  // below the artifact root; of archived bodies, below the data folder
  std::string problem;
  bool archived = false;  // one of archived bodies (docs/format.md, Archive)
};

// How many of each kind.
struct DamagedFiles {
  std::size_t artifacts = 0, archived = 0;
};
DamagedFiles count_damaged(const std::vector<DamagedFile>& files);
// "2 artifacts and 1 file of archived bodies are not in it"
std::string lacking_words(const DamagedFiles& files);
void write_damaged(json::Writer& out, const std::vector<DamagedFile>& files);  // a JSON array

struct BackupManifest {
  std::string name;  // of the generation
  std::string made_at;
  std::string version;
  int postgres_major = 0;
  std::int16_t log_no = 1;  // the one that the daemon writes
  std::vector<store::DumpedLog> logs;
  std::vector<store::DumpedRole> roles;
  std::string sums_hash;
  bool has_private_key = false;
  std::vector<DamagedFile> damaged;

  const store::DumpedLog* log() const;
};

// path below the folder of backups → SHA-256 in hexadecimal
using FileSums = std::map<std::string, std::string>;

class BackupSet {
 public:
  // For writing: made if it is missing, and locked. Errors: conflict for a folder of something else, or in use.
  static Result<BackupSet> open(const std::string& folder);
  // For reading. Errors: not_found.
  static Result<BackupSet> open_to_read(const std::string& folder);

  const std::string& folder() const { return folder_; }
  const Fd& root() const { return root_; }
  Result<std::vector<std::string>> generations() const;  // complete ones, the oldest first
  Result<BackupManifest> manifest(std::string_view generation) const;
  // Errors: corrupt when they are not what the manifest says, or name a path outside.
  Result<FileSums> sums(const BackupManifest& manifest) const;

  // Makes the generation whose files lie in generations/.NAME complete: all of it is on the disk before it has its
  // name.
  Status complete(const BackupManifest& manifest, const FileSums& sums);
  // Removes all but the newest `keep` generations, and then the artifacts that none of the rest names. How many files.
  Result<std::size_t> prune(std::size_t keep);
  // What attempts that were cut short left behind.
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

// Reads the regular file `path` below `from`, writes it to `to` (a new file with `mode`) unless that is empty, and
// answers what it read. Not synced.
Result<CopiedFile> copy_file(const Fd& from, const std::string& path, const std::string& to, mode_t mode);
// The folders above `path`, closed to others.
Status make_folders_above(const std::string& path);

}  // namespace muniment::cli
