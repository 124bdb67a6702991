// The note that is published beside the tiles, held against the newest signature of the log, wherever that is kept:
// whoever reads the tiles sees no event behind the published one.
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

// An older note, or none beside tiles, is a finding, but for two moments that no lie is needed for. The daemon
// remembers a note and then publishes it: one that lives is given 2 s. One that was killed, or whose power was cut,
// leaves what had come to the disk: where the log does not end with a stop, and what the published note lacks was
// recorded within two minutes, it is a warning. Errors: unavailable, the database's.
Status check_published(Connection& connection, const Log& log, const SignedLog& signatures, const PublishedNote& note,
                       Findings& findings, std::vector<std::string>& warnings);

}  // namespace muniment::verify
