// File descriptors of the process: how many it may open, and how many connections that allows.
#pragma once

#include <cstddef>

#include "base/result.hpp"

namespace muniment {

// Raises the soft limit of open files as far as the hard limit and the daemon's use allow. Returns how many connections
// a daemon with `threads` that serve requests can have, limits::connections_max at most. Errors: invalid_argument if
// that is not even one.
Result<std::size_t> reserve_descriptors(std::size_t threads, std::size_t http_connections);

}  // namespace muniment
