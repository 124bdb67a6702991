// The files of archived bodies (docs/format.md, Archive), held against the rows whose bodies they have: nothing else
// has them.
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
  std::int64_t first_file = 0, last_file = 0;  // by their number: read_bodies in base/files/body_bundle.hpp
};

// Those of the logs 1 to `log_no`, as of now: what is archived stays so, and its files are there before it is. Errors:
// unavailable.
Result<std::vector<ArchivedPartition>> archived_partitions(const std::string& uri, std::int16_t log_no);

// Where a file lies below the data folder.
std::string archived_path(std::int16_t log_no, std::int64_t file);

struct CheckedArchive {
  std::size_t files = 0;             // that are as their rows say
  std::vector<DamagedFile> damaged;  // or missing
};

// Each file of these partitions, below `data`, must have every body that its rows lack, as it was hashed. Errors:
// unavailable; those of reading a file, but for one that is missing or damaged.
Result<CheckedArchive> check_archive(const std::string& uri, const std::vector<ArchivedPartition>& partitions,
                                     const std::string& data);

}  // namespace muniment::cli
