// What must hold of the database as a whole, beside the rows of the log that is verified: no row belongs to a log that
// there is not or of no event, no closed log was cut, no follower stands where the log is not, and the archive's table
// says what the log says.
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

// The events of a log begin with 0: a row of one before that is of none.
Status check_rows_before(Connection& connection, const Log& log, Findings& findings);

// A log that was restored and goes on in another one takes nothing more: the first event of that one says how long it
// is.
Status check_closed_end(Connection& connection, const Log& log, Findings& findings);

// Whether a daemon held the log at this time.
struct Writing {
  bool live = false;
  Time at;
};

// What the tables of a follower cannot say yet goes into `not_checked`.
Status check_followers(Connection& connection, const Log& log, const Writing& writing, Findings& findings,
                       std::vector<std::string>& not_checked);

Status check_archived_partitions(Connection& connection, const Log& log, const std::set<ArchivedSpan>& said,
                                 Findings& findings);

}  // namespace muniment::verify
