// Runs a command as if nobody watched, and keeps what it writes: standard output and error go on to
// ours and into files. Where our standard output is a terminal, so is the command's.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"

namespace muniment::cli {

struct CommandOutcome {
  int exit_code = 0;          // when `signal` is 0
  int signal = 0;
  bool not_found = false;     // could not be started: exit_code is 127 or 126, as a shell says it
  bool output_lost = false;   // the disk was full: what is kept ends before the output did
  Fd stdout_file;             // unnamed files
  Fd stderr_file;             // not open: went the same way as standard output (a terminal)
};

// Blocks until the command has ended. Signals that this process gets are handed on. Errors:
// unavailable when there is no way to run anything; the command was then not started.
Result<CommandOutcome> run_command(const std::vector<std::string>& arguments);

std::string signal_name(int signal);  // "SIGTERM"

}  // namespace muniment::cli
