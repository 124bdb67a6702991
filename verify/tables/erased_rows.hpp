// Checks the result of an erasure: events without a body, and rows of other tables that were cleared or
// deleted.
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

// Checks the rows. `erased` holds the events that have neither salt nor body. `announced` holds the events that an
// event.redacted names. `data` is the daemon's folder, or empty. `erasing` receives the runs with an announced erasure
// whose content was still visible in the snapshot; data of these runs that is read outside the snapshot may be older or
// newer. Errors: unavailable if an erasure is still in progress.
Status check_erased_rows(SharedSnapshot& snapshot, const Log& log, const std::vector<std::int64_t>& erased,
                         const std::set<std::int64_t>& announced, const std::string& data, Findings& findings,
                         std::set<std::string>& erasing);

// Waits for the files of `work.left` to disappear and adds a finding for each that remains. Errors: unavailable while
// an erasure is in progress, or if files remain and `data` is empty.
Status check_left_files(const FileWork& work, const std::string& data);

}  // namespace muniment::verify
