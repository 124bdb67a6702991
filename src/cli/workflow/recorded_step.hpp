// Runs one step of a blind workflow as a recorded command: command.start before it, command.end with its output, its
// isolation and its refused accesses after it.
#pragma once

#include <string>

#include "base/result.hpp"
#include "cli/workflow/step_process.hpp"
#include "client/connect/session.hpp"

namespace muniment::cli {

struct RecordedStep {
  std::string name;  // spec_writer, coder or tester; also the id of its step
  std::string command_id;
  std::string stdout_artifact;  // empty: the command wrote nothing
  StepOutcome outcome;

  // "exit 0", "exit 3", "SIGSEGV", "exceeded its limit output_bytes", "interrupted", …
  std::string ending() const;
};

struct StepPlace {
  Session& session;
  std::string run_id;
  std::string demanded;  // isolation
};

// Errors: those of the daemon, and of run_step; then the end of the command is recorded as well.
Result<RecordedStep> run_recorded(const StepPlace& place, const std::string& name, const StepPlan& plan,
                                  StopSignals& stop);

}  // namespace muniment::cli
