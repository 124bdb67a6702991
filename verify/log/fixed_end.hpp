// Determines the last seq to verify before anything is read. The verdict `verified` requires a signature over every
// event up to it. A running daemon signs new commits within a moment, and the verifier waits for that signature.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "verify/verify.hpp"

namespace muniment::verify {

struct FixedEnd {
  std::int64_t upto = -1;  // -1: the log is empty or absent
  bool live = false;       // a daemon holds the log
};

// Returns the last seq of the log. If a daemon holds the log, the call returns when a checkpoint of that size is
// stored, or after 2 s. It does not check the signature of that checkpoint. Errors: unavailable.
Result<FixedEnd> fix_end(const Options& options);

}  // namespace muniment::verify
