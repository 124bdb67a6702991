// Records a session of Claude Code from the file that the agent writes, while it writes it.
//
// The file may be cut, rewritten or replaced: then it is read again from its start. That records nothing twice, whoever
// reads it: an event's id is made of the id of its line (its uuid, or its bytes where it has none) and of what the
// event says.
#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include "base/result.hpp"

namespace muniment::cli {

struct FollowOptions {
  std::string socket;
  std::string file;
  // How long nothing may come before the model's last message counts as whole: its parts are lines of their own.
  std::chrono::milliseconds settle_after{60'000};
};

struct Followed {
  std::string run_id;
  std::uint64_t lines = 0;    // that were read, again ones included
  std::uint64_t rereads = 0;  // how often the file was another one
  bool started = false;       // something was recorded: there is a run
};

// Until `stop` is set; then what is held back is recorded, and the run stays open. While the daemon is away it waits:
// the file keeps what happens. Errors: run_halted; those of the daemon that no waiting mends; denied for a file that
// may not be read; invalid_argument, before anything is recorded, for one that does not begin as a session does.
Result<Followed> follow_session(const FollowOptions& options, const std::atomic<bool>& stop);

}  // namespace muniment::cli
