// Reads a peer's credentials from the kernel.
#include "daemon/peer.hpp"

#include <grp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace muniment::daemon {
namespace {

constexpr std::size_t groups_max = 65'536;  // the kernel's NGROUPS_MAX
constexpr std::size_t group_bytes_max = 1U << 20;

}  // namespace

bool Peer::in_group(std::uint32_t gid) const { return std::find(gids.begin(), gids.end(), gid) != gids.end(); }

Result<Peer> peer_of(int connection) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    return Error(Errc::denied, "the kernel does not report the peer's credentials");
  }
  Peer peer{credentials.uid, static_cast<std::uint32_t>(credentials.pid), {}};
  std::vector<std::uint32_t> more(64);
  length = static_cast<socklen_t>(more.size() * sizeof more[0]);
  int asked = ::getsockopt(connection, SOL_SOCKET, SO_PEERGROUPS, more.data(), &length);
  if (asked != 0 && errno == ERANGE && length <= groups_max * sizeof more[0]) {
    more.resize(length / sizeof more[0]);
    asked = ::getsockopt(connection, SOL_SOCKET, SO_PEERGROUPS, more.data(), &length);
  }
  // A kernel without this option returns an error; then only the first group counts.
  if (asked == 0) peer.gids.assign(more.begin(), more.begin() + static_cast<std::ptrdiff_t>(length / sizeof more[0]));
  peer.gids.push_back(credentials.gid);
  return peer;
}

Result<std::uint32_t> group_named(const std::string& name) {
  std::vector<char> buffer(16'384);
  group entry{};
  group* found = nullptr;
  int failed = 0;
  while ((failed = ::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found)) == ERANGE &&
         buffer.size() < group_bytes_max) {
    buffer.resize(buffer.size() * 2);
  }
  if (failed != 0 || found == nullptr) return Error(Errc::not_found, "there is no group \"" + name + "\"");
  return std::uint32_t{found->gr_gid};
}

}  // namespace muniment::daemon
