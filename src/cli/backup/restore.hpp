// Implements `muniment restore`: restores a backup into an empty data folder and verifies it before a daemon may use
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/config/config.hpp"
#include "base/result.hpp"
#include "cli/backup/set.hpp"

namespace muniment::cli {

struct RestoreRequest {
  Config config;           // data, and database unless it is a private one
  std::string generation;  // empty: the newest
  std::string key;         // file of keys that the verification trusts
  std::string known;       // file with a checkpoint that was kept elsewhere
  bool complete = false;   // no event was appended after this backup, so the same log continues
  bool despite_findings = false;
};

struct RestoreReport {
  BackupManifest manifest;
  std::size_t files = 0;
  std::int64_t bytes = 0;
  std::int64_t known_size = 0;   // size of the log in the known checkpoint; 0: none was given
  bool continues_known = false;  // the log is consistent with that checkpoint
  int verify_exit_code = -1;
  std::string verify_report;  // report of the verification as JSON
  std::string set_aside;      // new path of a configuration that names a different database; empty: none
};

// Errors: conflict if the folder or the database is not empty; corrupt if the backup has changed since it was made or
// verification found a problem: then the folder is kept and marked, and no daemon starts on it.
Result<RestoreReport> restore_backup(const RestoreRequest& request, const BackupSet& set);

}  // namespace muniment::cli
