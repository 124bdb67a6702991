// One run of a hook: a configured program that receives JSON and answers with JSON.
//
// It runs without a shell and without inherited descriptors, with an environment of PATH, LANG and HOME, in its own
// process group. Its standard input is a file in memory, so a hook that does not read blocks nothing. The run ends at
// the time limit or after limits::hook_answer_bytes_max of answer; then its whole group is killed, so that processes it
// started do not outlive the answer. (A process that leaves the group deliberately does; hooks belong to the daemon's
// owner.)
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace muniment::retrieval {

struct HookCommand {
  std::string name;               // the name in log lines: "expansion hook"
  std::vector<std::string> argv;  // argv[0] is an absolute path
  std::chrono::milliseconds limit{};
};

// Returns the hook's standard output, if it ended by itself with status 0. Logs the beginning of its standard error.
// Errors: unavailable, with a text that can follow its name.
Result<std::string> run_hook(const HookCommand& command, std::string_view input, Deadline deadline);

}  // namespace muniment::retrieval
