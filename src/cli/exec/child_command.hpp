// Runs a command and records its output: standard output and error are copied to those of this process and to files. If
// standard output is a terminal, the command gets a terminal too. Signals and job control (^Z, fg, bg) reach the
// command.
#pragma once

#include <signal.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/files/file.hpp"
#include "base/result.hpp"

namespace muniment::cli {

// Blocks the signals that would end this process, and discards them on destruction, because after the end of the
// command they would only interrupt the recording of that end.
class HeldSignals {
 public:
  HeldSignals() = default;
  // The signals are blocked already; `before` is the mask to restore.
  explicit HeldSignals(const sigset_t& before) : before_(before), holding_(true) {}
  ~HeldSignals();
  HeldSignals(HeldSignals&& other) noexcept;
  HeldSignals& operator=(HeldSignals&& other) noexcept;

 private:
  sigset_t before_{};
  bool holding_ = false;
};

struct CommandOutcome {
  int exit_code = 0;  // valid if `signal` is 0
  int signal = 0;
  bool not_found = false;        // the command could not be started; exit_code is 127 or 126, as in a shell
  std::int64_t duration_us = 0;  // time from its start to its end
  bool output_lost = false;      // the disk was full, so the copy is shorter than the output
  Fd stdout_file;                // an unnamed file
  Fd stderr_file;                // not open on a terminal, on which both streams share standard output
  HeldSignals held;
};

// Blocks until the command has ended. Forwards the signals that this process receives. In a worker of the executor,
// `front` is the process whose terminal and job the command uses; 0: this process. Errors: unavailable if no process
// can be started.
Result<CommandOutcome> run_command(const std::vector<std::string>& arguments, pid_t front);

std::string signal_name(int signal);  // "SIGTERM"

}  // namespace muniment::cli
