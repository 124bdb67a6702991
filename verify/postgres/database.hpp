// Checks the database as a whole, apart from the rows of the verified log: every row belongs to an existing log and
// event, no closed log was truncated, no follower's position is outside the log, and the archive's table matches the
// log.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "verify/finding.hpp"
#include "verify/log/history.hpp"
#include "verify/log/scan.hpp"
#include "verify/postgres/postgres.hpp"

namespace muniment::verify {

Status check_foreign_rows(Connection& connection, Findings& findings);

// Checks rows of events before seq 0, with which a log begins. They belong to no event.
Status check_rows_before(Connection& connection, const Log& log, Findings& findings);

// Checks the length of a closed log, which the first event of its successor records.
Status check_closed_end(Connection& connection, const Log& log, Findings& findings);

// Returns whether a daemon held the log at this time.
struct Writing {
  bool live = false;
  Time at;
};

// Adds the rows that a follower has not written yet to `not_checked`.
Status check_followers(Connection& connection, const Log& log, const Writing& writing, Findings& findings,
                       std::vector<std::string>& not_checked);

Status check_archived_partitions(Connection& connection, const Log& log, const std::set<ArchivedSpan>& said,
                                 Findings& findings);

}  // namespace muniment::verify
