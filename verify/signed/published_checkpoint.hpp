// Checks the note published beside the tiles against the newest signature of the log from any source. Readers of the
// tiles see no event after the published note.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "verify/finding.hpp"
#include "verify/log/scan.hpp"
#include "verify/postgres/postgres.hpp"
#include "verify/signed/signed_log.hpp"

namespace muniment::verify {

struct PublishedNote {
  std::string tiles;  // the folder
  bool live = false;  // a daemon holds the log
};

// Reports a published note that is missing or older than the newest signature, with two exceptions. A running daemon
// records a note before it publishes it, and is given 2 s. A crash or a power failure loses recent writes: if the log
// does not end with a stop and the events that the published note lacks were recorded within two minutes, the deviation
// is a warning. Errors: unavailable, from the database.
Status check_published(Connection& connection, const Log& log, const SignedLog& signatures, const PublishedNote& note,
                       Findings& findings, std::vector<std::string>& warnings);

}  // namespace muniment::verify
