// Who is at the other end of a connection, as the kernel says: what they claim does not count.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace muniment::daemon {

struct Peer {
  std::uint32_t uid = 0;
  std::vector<std::uint32_t> gids;  // its group and the supplementary ones, when it connected

  bool in_group(std::uint32_t gid) const;
};

// Errors: denied.
Result<Peer> peer_of(int connection);

// The number of a group. Errors: not_found.
Result<std::uint32_t> group_named(const std::string& name);

}  // namespace muniment::daemon
