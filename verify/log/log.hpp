// Reads the facts about a log that are needed before its events: its identity, its end, the ids of its runs, and
// whether the partitions of its event table are the ones that readers see.
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

// Errors: not_found if there is no such log. `log_no` nullopt: the only log, or the first one.
Result<Log> find_log(Connection& connection, std::optional<std::int64_t> log_no, std::vector<std::int64_t>& others);

// Reads run ids from the first event of each run, because the spans need them.
Status read_run_ids(Connection& connection, Log& log);  // only runs above log.run_no_known

Status check_partitions(Connection& connection, const Log& log, Findings& findings);

}  // namespace muniment::verify
