// The search indexes, held against the documents: every passage that can be found is in them, and nothing else is. They
// follow the log, so that what they have not come to is a state and no finding.
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
  std::int64_t lexical = 0, lexical_history = 0;  // passages
  std::int64_t spaces = 0, vectors = 0, vectors_history = 0;
};

struct IndexWork {
  std::string folder;  // of the search child: lexical/, vector/, models/
  const SharedSnapshot& snapshot;
  const Log& log;
  Findings& findings;
  std::vector<std::string>& not_checked;
};

// Errors: unavailable, where files or rows could not be read, or the daemon wrote too fast for it.
Status check_indexes(const IndexWork& work, IndexCounts& counts);

}  // namespace muniment::verify
