// Implements `muniment doctor --self`: checks the seven criteria of Muniment's own completion in a new run, and records
// the report as evidence.
#pragma once

#include "base/result.hpp"
#include "cli/connect/session.hpp"

namespace CLI {
class App;
}

namespace muniment::cli {

// Prints the report. The exit code is 1 unless all criteria are met. Errors: unavailable if no daemon answers, and
// those of starting the run.
Status validate_self(Session& session, const CLI::App& program);

}  // namespace muniment::cli
