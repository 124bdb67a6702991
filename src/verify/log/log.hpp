// What must be known of a log before its events are read: which it is, where it ends, what its
// runs are called, and that the parts of its event table are the ones that readers see.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "verify/finding.hpp"
#include "verify/log/scan.hpp"
#include "verify/postgres/postgres.hpp"

namespace muniment::verify {

// Errors: not_found when there is no such log (`log_no` nullopt: the only one, or the first).
Result<Log> find_log(Connection& connection, std::optional<std::int64_t> log_no, std::vector<std::int64_t>& others);

// The names stand in the first event of each run: read before the spans, which need them.
Status read_run_ids(Connection& connection, Log& log);  // those above log.run_no_known

Status check_partitions(Connection& connection, const Log& log, Findings& findings);

}  // namespace muniment::verify
