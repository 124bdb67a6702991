// Names the standbys that must confirm each commit of the log.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/config/config.hpp"
#include "base/result.hpp"

namespace muniment {

struct Standbys {
  std::int64_t required = 0;       // number that must confirm; 0: none
  std::vector<std::string> names;  // their application_name; empty: those that Postgres counts as synchronous
};

// Reads the settings required_standbys and standbys. With names, at least one is required. Errors: invalid_argument.
Result<Standbys> standbys_of(const Config& config);

}  // namespace muniment
