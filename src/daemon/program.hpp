// The program munimentd. The same program also runs as its child processes: see start/child_modes.hpp.
#pragma once

#include "mcp/offer/extension.hpp"

namespace muniment::daemon {

// Returns the exit status. `extension` may be null.
int run_program(int argc, char** argv, const mcp::Extension* extension);

}  // namespace muniment::daemon
