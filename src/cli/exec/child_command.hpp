// Runs a command as if nobody watched, and keeps what it writes: standard output and error go on to
// ours and into files. Where our standard output is a terminal, so is the command's.
#pragma once

#include <signal.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/files/file.hpp"
#include "base/result.hpp"

namespace muniment::cli {

// While it lives, the signals that would end us wait, and with it they go: the command is over, and what
// they would cut off is the recording of its end.
class HeldSignals {
 public:
  HeldSignals() = default;
  // They are blocked already; `before` is the mask from before that.
  explicit HeldSignals(const sigset_t& before) : before_(before), holding_(true) {}
  ~HeldSignals();
  HeldSignals(HeldSignals&& other) noexcept;
  HeldSignals& operator=(HeldSignals&& other) noexcept;

 private:
  sigset_t before_{};
  bool holding_ = false;
};

struct CommandOutcome {
  int exit_code = 0;  // when `signal` is 0
  int signal = 0;
  bool not_found = false;        // could not be started: exit_code is 127 or 126, as a shell says it
  std::int64_t duration_us = 0;  // from its start to its end
  bool output_lost = false;      // the disk was full: what is kept ends before the output did
  Fd stdout_file;                // unnamed files
  Fd stderr_file;                // not open: went the same way as standard output (a terminal)
  HeldSignals held;
};

// Blocks until the command has ended. Signals that this process gets are handed on. Errors:
// unavailable when there is no way to run anything; the command was then not started.
Result<CommandOutcome> run_command(const std::vector<std::string>& arguments);

std::string signal_name(int signal);  // "SIGTERM"

}  // namespace muniment::cli
