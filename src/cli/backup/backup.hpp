// Implements `muniment backup`: dumps one snapshot of the database, then copies every file that it names. The daemon
// may be running and is not contacted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "cli/backup/set.hpp"

namespace muniment::cli {

struct BackupRequest {
  std::string data;         // the data folder
  std::string config_file;  // empty: none
  bool with_private_keys = false;
  bool check = false;  // also verify files already in the backup
};

struct BackupReport {
  BackupManifest manifest;
  std::size_t files = 0, new_files = 0;  // artifacts in the backup, without damaged ones
  std::size_t archive_files = 0;         // files of archived bodies, checked against their rows; without damaged ones
  std::int64_t bytes = 0, new_bytes = 0;
  std::int64_t dump_bytes = 0,
               dump_bytes_shared =
                   0;  // size of the part of the dump and the archived bodies that is shared with the previous backup
};

// Errors: those of the database and of the files. Damage in the data folder is listed in the manifest and is not an
// error.
Result<BackupReport> make_backup(const BackupRequest& request, BackupSet& set);

}  // namespace muniment::cli
