// What lies where nobody looks: rows of events that there cannot be, and the end of a log that goes on in another one.
#pragma once

#include "base/result.hpp"
#include "verify/finding.hpp"
#include "verify/log.hpp"
#include "verify/postgres.hpp"

namespace muniment::verify {

// The events of a log begin with 0: a row of one before that is of none.
Status check_rows_before(Connection& connection, const Log& log, Findings& findings);

// A log that was restored and goes on in another one takes nothing more: the first event of that one says how long it is.
Status check_closed_end(Connection& connection, const Log& log, Findings& findings);

}  // namespace muniment::verify
