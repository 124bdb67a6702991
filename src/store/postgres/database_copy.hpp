// A copy of the whole database as files, made by Postgres' own pg_dump, and the way back, by pg_restore. What a backup
// has to know beside it (the logs, the roles, the files that the rows name) is read in the very snapshot that is
// dumped: both are of one moment, however busy the log is.
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
  std::int64_t size = 0;  // events
  bool erasing = false;   // an erasure was announced, and not carried out
};

// A role belongs to the whole server, and is in no dump of a database.
struct DumpedRole {
  std::string name;
  bool bypasses_rls = false;
};

// An artifact's file, below the artifact root. Those that were erased are left out.
struct NamedFile {
  std::string path;
  std::string hash;  // 64 hexadecimal digits
  std::int64_t size_bytes = 0;
};

struct DumpedDatabase {
  std::vector<DumpedLog> logs;  // by number
  std::vector<DumpedRole> roles;
  std::vector<NamedFile> files;
};

// Writes the dump to `folder`, which must not be there yet. `programs`: where pg_dump lies. Errors: unavailable;
// denied; system_error with what pg_dump said.
Result<DumpedDatabase> dump_database(const std::string& uri, const std::string& programs, const std::string& folder);

// Whether anything was erased after that moment: then the dump holds words that should be gone.
Result<bool> erased_since(const std::string& uri, const std::vector<DumpedLog>& logs);

// Whether there is anything of Muniment's in the database.
Result<bool> holds_a_log(const std::string& uri);

// Into an empty database. Errors: conflict when it is not; denied where its user may not make the roles; system_error
// with what pg_restore said.
Status restore_database(const std::string& uri, const std::string& programs, const std::string& folder,
                        const std::vector<DumpedRole>& roles);

}  // namespace muniment::store
