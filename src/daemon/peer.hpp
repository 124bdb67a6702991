// The identity of a connection's peer as reported by the kernel. Claims of the peer are ignored.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace muniment::daemon {

struct Peer {
  std::uint32_t uid = 0;
  std::uint32_t process = 0;
  std::vector<std::uint32_t> gids;  // its primary and supplementary groups at the time of the connection

  bool in_group(std::uint32_t gid) const;
};

// Errors: denied.
Result<Peer> peer_of(int connection);

// Returns the number of a group. Errors: not_found.
Result<std::uint32_t> group_named(const std::string& name);

}  // namespace muniment::daemon
