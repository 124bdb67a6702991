// Checks the files of archived bodies (docs/format.md, Archive) against the rows of their events. These files are the
// only copy of the bodies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/backup/set.hpp"

namespace muniment::cli {

struct ArchivedPartition {
  std::int16_t log_no = 0;
  std::int64_t first_file = 0, last_file = 0;  // file numbers as in read_bodies of base/files/body_bundle.hpp
};

// Returns the archived partitions of the logs 1 to `log_no`. An archived partition stays archived, and its files exist
// before it is marked. Errors: unavailable.
Result<std::vector<ArchivedPartition>> archived_partitions(const std::string& uri, std::int16_t log_no);

// Path of a file relative to the data folder.
std::string archived_path(std::int16_t log_no, std::int64_t file);

struct CheckedArchive {
  std::size_t files = 0;             // files that match their rows
  std::vector<DamagedFile> damaged;  // damaged or missing files
};

// Checks that the files of these partitions, below `data`, contain every archived body and that each matches its hash.
// Errors: unavailable; read errors, except that a missing or damaged file is reported in the result.
Result<CheckedArchive> check_archive(const std::string& uri, const std::vector<ArchivedPartition>& partitions,
                                     const std::string& data);

}  // namespace muniment::cli
