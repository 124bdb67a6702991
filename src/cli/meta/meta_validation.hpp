// Implements `muniment doctor --self`: checks the seven criteria of Muniment's own completion in a new run, and records
// the report as evidence.
#pragma once

#include <string>

#include "base/result.hpp"
#include "client/connect/session.hpp"

namespace muniment::cli {

// Prints the report. `commands`: commands of muniment, as --command-tree prints them. The exit code is 1 unless all
// criteria are met. Errors: unavailable if no daemon answers, and those of starting the run.
Status validate_self(Session& session, std::string commands);

}  // namespace muniment::cli
