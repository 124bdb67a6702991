// Manages the limit of open file descriptors and the number of connections that it permits.
#pragma once

#include <cstddef>

#include "base/result.hpp"

namespace muniment {

struct ConnectionsMax {
  std::size_t socket = 0, http = 0;
};

// Raises the soft limit of open files as far as the hard limit and the daemon's needs permit. Returns the numbers of
// connections for a daemon with `threads` that serve requests, at most limits::connections_max and `http_wanted`. With
// few descriptors both kinds get the same number. Errors: invalid_argument if not even one connection is possible.
Result<ConnectionsMax> reserve_descriptors(std::size_t threads, std::size_t http_wanted);

}  // namespace muniment
