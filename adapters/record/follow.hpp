// Records a session of Claude Code from its growing session file.
//
// If the file is truncated, rewritten or replaced, it is read again from its start. Nothing is recorded twice: the id
// of an event is derived from the id of its line (its uuid, or its bytes if it has none) and from the contents of the
// event.
#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include "base/result.hpp"

namespace muniment::cli {

struct FollowOptions {
  std::string socket;
  std::string file;
  // Idle time after which the model's last message counts as complete, since its parts are separate lines.
  std::chrono::milliseconds settle_after{60'000};
};

struct Followed {
  std::string run_id;
  std::uint64_t lines = 0;    // lines read, including repeated ones
  std::uint64_t rereads = 0;  // number of times the file was replaced
  bool started = false;       // a run was started
};

// Runs until `stop` is set, then records held events and leaves the run open. While the daemon is unavailable it waits,
// since the file keeps the events. Errors: run_halted; permanent errors of the daemon; denied if the file is
// unreadable; invalid_argument, before anything is recorded, if the file does not begin like a session.
Result<Followed> follow_session(const FollowOptions& options, const std::atomic<bool>& stop);

}  // namespace muniment::cli
