// Checks the files below the artifact root: each artifact has its bytes, and no other file exists.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "verify/files/artifact_root.hpp"
#include "verify/finding.hpp"
#include "verify/log/scan.hpp"
#include "verify/postgres/shared_snapshot.hpp"

namespace muniment::verify {

struct FileCounts {
  std::int64_t looked_at = 0;  // rows of artifacts
  std::int64_t files = 0;
  std::int64_t bytes = 0;
  std::int64_t in_flight = 0;           // files whose event is not in the snapshot
  std::string in_flight_first;          // a file that has a staging link
  std::optional<std::int64_t> unknown;  // files that no event names; nullopt: not searched for
  std::vector<std::string> unread;      // files that could not be read; their content is unknown
};

// A file that an erasure removes last: its artifact's row is erased, but the file still existed when it was checked.
struct LeftFile {
  std::string path;
  std::int64_t seq = -1;
  std::string run_id;
};

struct FileWork {
  SharedSnapshot& snapshot;
  const Log& log;
  const ArtifactRoot& root;
  const std::set<std::string>& redacted;  // artifact_ids whose files may be absent
  Findings& findings;
  std::vector<LeftFile>& left;
};

// Hashes every artifact file with `jobs` threads. For an erased artifact, checks only whether the file exists.
Status check_files(const FileWork& work, unsigned jobs, FileCounts& counts);

// Searches for files that no row names.
Status check_unknown_files(const FileWork& work, FileCounts& counts);

}  // namespace muniment::verify
