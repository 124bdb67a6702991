// The upper seq of a verify, fixed before anything is read: every event up to it must be signed for the verdict
// `verified`. A daemon that lives signs within a moment what it has just committed, and is given that moment.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "verify/verify.hpp"

namespace muniment::verify {

struct FixedEnd {
  std::int64_t upto = -1;  // -1: the log was empty, or is not there
  bool live = false;       // a daemon holds the log
};

// The log's last seq as it is now. Where a daemon holds the log, returns when a checkpoint of that size is kept, or
// after 2 s. What such a note is worth is not looked at here. Errors: unavailable.
Result<FixedEnd> fix_end(const Options& options);

}  // namespace muniment::verify
