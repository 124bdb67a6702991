// The system calls of a confined command that the filter reports and the notifier judges: those that name a file or an
// address, and those that a confined command never needs.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace muniment::cli {

// The arguments of a call that are judged.
enum class CallKind : std::uint8_t {
  path,          // path
  path_at,       // folder, path
  two_paths,     // path, path
  two_paths_at,  // folder, path, folder, path
  address,       // descriptor, address, length
  family,        // family of a socket; only calls with a family that is not permitted are reported
  namespaces,    // flags; only calls that make a namespace are reported
  none,          // the call is refused whatever its arguments
};

// The use of a file that a call names.
enum class Access : std::uint8_t {
  open,     // reads or changes it
  execute,  // executes it
  change,   // changes its name or its size
  look,     // reads facts about it
};

struct WatchedCall {
  long number;
  const char* name;
  CallKind kind = CallKind::none;
  Access access = Access::change;
};

std::span<const WatchedCall> watched_calls();

// Families of sockets that a confined command may use. The kernel has dozens of others, whose code is used less.
std::span<const int> permitted_families();

// Returns "AF_VSOCK", or "family 99".
std::string family_name(int family);

}  // namespace muniment::cli
