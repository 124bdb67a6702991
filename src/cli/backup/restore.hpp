// `muniment restore`: a backup becomes a data folder again, an empty one, and is verified before any daemon serves it.
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
  Config config;           // data, and database where it is not to be a private one
  std::string generation;  // empty: the newest
  std::string key;         // a file of keys that the verify trusts
  std::string known;       // a checkpoint that somebody kept
  bool complete = false;   // nothing was appended after this backup: the same log goes on
  bool despite_findings = false;
};

struct RestoreReport {
  BackupManifest manifest;
  std::size_t files = 0;
  std::int64_t bytes = 0;
  std::int64_t known_size = 0;   // of the log, from the checkpoint that was kept; 0: none was given
  bool continues_known = false;  // the verify held that checkpoint against the log, and it fits
  int verify_exit_code = -1;
  std::string verify_report;  // its JSON
  std::string set_aside;      // where the configuration was put that names another database
};

// Errors: conflict when the folder or the database is not empty; corrupt when the backup is not what it was when it
// was made, or the verify found something: then the folder stays, marked, and no daemon starts on it.
Result<RestoreReport> restore_backup(const RestoreRequest& request, const BackupSet& set);

}  // namespace muniment::cli
