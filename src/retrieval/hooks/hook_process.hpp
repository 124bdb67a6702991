// One run of a hook: a program from the configuration that is given JSON and answers with JSON.
//
// No shell, no inherited descriptors, an environment of PATH, LANG and HOME, a process group of its own. Its standard
// input is a file in memory, so that nobody waits for a hook that does not read. Whatever it does, it is over at the
// time limit or at limits::hook_answer_bytes_max of answer, and then all of its group is killed: what a hook leaves
// running does not outlive its answer. (A process that leaves the group on purpose does; a hook is the owner's own.)
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace muniment::retrieval {

struct HookCommand {
  std::string name;               // "expansion hook", as its log lines call it
  std::vector<std::string> argv;  // argv[0] is an absolute path
  std::chrono::milliseconds limit{};
};

// What it wrote to standard output, if it ended by itself with status 0. The beginning of what it wrote to standard
// error is in the daemon's log. Errors: unavailable, in words that can follow its name.
Result<std::string> run_hook(const HookCommand& command, std::string_view input, Deadline deadline);

}  // namespace muniment::retrieval
