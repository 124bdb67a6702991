// Copies a whole database to files with Postgres' pg_dump and restores it with pg_restore. The other data of a backup
// (the logs, the roles, the files that the rows name) is read in the same snapshot as the dump, so that both are
// consistent even on a busy log.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"

namespace muniment::store {

struct DumpedLog {
  std::int16_t log_no = 0;
  Uuid log_id;
  std::int64_t size = 0;  // number of events
  bool erasing = false;   // an erasure was announced but is unfinished
};

// Roles belong to the whole server and are not part of a database dump.
struct DumpedRole {
  std::string name;
  bool bypasses_rls = false;
};

// File of an artifact, relative to the artifact root. Erased files are omitted.
struct NamedFile {
  std::string path;
  std::string hash;  // 64 hexadecimal digits
  std::int64_t size_bytes = 0;
};

struct DumpedDatabase {
  std::vector<DumpedLog> logs;  // ordered by number
  std::vector<DumpedRole> roles;
  std::vector<NamedFile> files;
};

// Writes the dump to `folder`, which must not exist. `programs`: folder of pg_dump. Errors: unavailable; denied;
// system_error with the output of pg_dump.
Result<DumpedDatabase> dump_database(const std::string& uri, const std::string& programs, const std::string& folder);

// Returns whether anything was erased after the dump, which then holds content that must be erased.
Result<bool> erased_since(const std::string& uri, const std::vector<DumpedLog>& logs);

// Returns whether the database contains Muniment's tables.
Result<bool> holds_a_log(const std::string& uri);

// Restores into an empty database. Errors: conflict if it is not empty; denied if its user may not create the roles;
// system_error with the output of pg_restore.
Status restore_database(const std::string& uri, const std::string& programs, const std::string& folder,
                        const std::vector<DumpedRole>& roles);

}  // namespace muniment::store
