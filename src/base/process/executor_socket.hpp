// The socket of the executor: an abstract Unix socket, which has no entry in the file system.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/clock.hpp"
#include "base/files/file.hpp"
#include "base/result.hpp"

namespace muniment {

// Errors: unavailable.
Result<Fd> listen_as_executor(const std::string& name);
// Sending to it and receiving from it also fail after `patience`.
Result<Fd> connect_to_executor(const std::string& name, std::chrono::milliseconds patience);

// Message of the daemon itself. The answer is the digest and one more byte.
struct TreeRequest {
  std::uint32_t uid = 0;
  std::uint32_t process = 0;  // the caller's, which must not be confined
  std::uint32_t seconds = 0;  // time after which no answer is needed
  char folder[4096] = "";
};

// Returns the digest of the working tree of a folder (docs/evidence.md), as that process of the user sees it; empty for
// a folder that is in no tree or cannot be entered, and for a confined process. Only the daemon may ask. Blocks.
// Errors: invalid_argument for a path that is too long, unavailable, deadline_exceeded.
Result<std::string> digest_of_tree(const std::string& executor, std::uint32_t uid, std::uint32_t process,
                                   const std::string& folder, Deadline deadline);

}  // namespace muniment
