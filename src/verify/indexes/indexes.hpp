// Checks the search indexes against the documents: they hold every passage that can be found, and no other data. The
// indexes follow the log, so a lag is reported as a state, not as a finding.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "verify/finding.hpp"
#include "verify/log/scan.hpp"
#include "verify/postgres/shared_snapshot.hpp"

namespace muniment::verify {

struct IndexCounts {
  std::int64_t lexical = 0, lexical_history = 0;  // number of passages
  std::int64_t spaces = 0, vectors = 0, vectors_history = 0;
};

struct IndexWork {
  std::string folder;  // folder of the search child: lexical/, vector/, models/
  const SharedSnapshot& snapshot;
  const Log& log;
  Findings& findings;
  std::vector<std::string>& not_checked;
};

// Errors: unavailable if files or rows could not be read, or if the daemon replaced them faster than they could be
// read.
Status check_indexes(const IndexWork& work, IndexCounts& counts);

}  // namespace muniment::verify
