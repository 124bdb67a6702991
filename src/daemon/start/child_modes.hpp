// The child modes of munimentd: `--search-child`, `--text-child` and `--cloud-child`, with channels from descriptor 3
// on. The daemon starts them; they are not meant for users.
#pragma once

#include <optional>

namespace muniment::daemon {

// Returns the exit status once the child has done its work; nullopt if the command line names no child. The process
// must exit at once: the sandbox may not permit what exit handlers do.
std::optional<int> serve_as_child(int argc, const char* const* argv);

}  // namespace muniment::daemon
