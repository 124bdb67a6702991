// What an erasure leaves: events without a body, and in the tables beside the log rows that say nothing, or no rows.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "verify/files/files.hpp"
#include "verify/finding.hpp"
#include "verify/log/scan.hpp"
#include "verify/postgres/shared_snapshot.hpp"

namespace muniment::verify {

// `erased`: the events that have neither salt nor body. `announced`: those of which an event.redacted says that they
// are erased. `data`: the daemon's folder, or empty. `erasing` takes the runs of which something is announced and was
// still there in the snapshot: what is read of them outside it may be of before or of after. Errors: unavailable where
// one of them is still to be carried out.
Status check_erased_rows(SharedSnapshot& snapshot, const Log& log, const std::vector<std::int64_t>& erased,
                         const std::set<std::int64_t>& announced, const std::string& data, Findings& findings,
                         std::set<std::string>& erasing);

// Those of `left` that stay. Errors as above.
Status check_left_files(const FileWork& work, const std::string& data);

}  // namespace muniment::verify
