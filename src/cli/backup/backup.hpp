// `muniment backup`: one moment of the database, and then every file that it names; beside a busy daemon, which is not
// asked for anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "cli/backup/set.hpp"

namespace muniment::cli {

struct BackupRequest {
  std::string data;         // the data folder
  std::string config_file;  // empty: there is none
  bool with_private_keys = false;
  bool check = false;  // read also what is in the backup already
};

struct BackupReport {
  BackupManifest manifest;
  std::size_t files = 0, new_files = 0;  // artifacts that are in it: not those that are damaged
  std::size_t archive_files = 0;  // of archived bodies, each held against its rows; again not those that are damaged
  std::int64_t bytes = 0, new_bytes = 0;
  std::int64_t dump_bytes = 0,
               dump_bytes_shared = 0;  // of the dump and the archived bodies: equal to those of the backup before
};

// Errors: those of the database and of the files. What is damaged in the data folder is in the manifest, and no error.
Result<BackupReport> make_backup(const BackupRequest& request, BackupSet& set);

}  // namespace muniment::cli
