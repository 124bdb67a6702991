// What munimentd is when it starts itself again: `--search-child` and `--text-child`, with channels from
// descriptor 3 on. Nobody types these.
#pragma once

#include <optional>

namespace muniment::retrieval {

// The exit status, once the child has done its work; nullopt for who is no child. The process ends with it at once:
// what exit handlers would do is not for a sandbox.
std::optional<int> serve_as_child(int argc, const char* const* argv);

}  // namespace muniment::retrieval
