// File descriptors of the process: how many it may open, and how many connections that allows.
#pragma once

#include <cstddef>

#include "base/result.hpp"

namespace muniment {

struct ConnectionsMax {
  std::size_t socket = 0, http = 0;
};

// Raises the soft limit of open files as far as the hard limit and the daemon's use allow. Returns how many connections
// a daemon with `threads` that serve requests can have, at most limits::connections_max and `http_wanted`. With few
// files it has as many of one kind as of the other. Errors: invalid_argument if that is not even one.
Result<ConnectionsMax> reserve_descriptors(std::size_t threads, std::size_t http_wanted);

}  // namespace muniment
