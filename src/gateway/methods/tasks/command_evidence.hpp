// Makes evidence of a recorded command from its events, its output and its report. The client contributes only the
// recorder's observation of the working tree.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "evidence/completion/completion.hpp"
#include "evidence/completion/policy.hpp"
#include "gateway/call.hpp"
#include "store/tables/runs.hpp"

namespace muniment::gateway::methods {

struct CommandEvidence {
  std::string content;  // JSON: text, command, report?, tests_changed?, tests_changed_reason?
  evidence::completion::Command command;
  std::vector<std::string> artifacts;  // ids of the artifacts from which it was made
};

// Reads the parameters command_id, report, tests_changed and tests_changed_reason. Errors: not_found for a command or
// an artifact that the run does not have, conflict for a command that has not ended, corrupt for a damaged artifact.
Result<CommandEvidence> command_evidence(Call& call, const store::Run& run);

// Returns the command that this content describes.
evidence::completion::Command command_of(const json::Value& content);

// The verdict of the structural checks alone on a command, with the reason.
struct CommandResult {
  bool passed = false;
  std::string reason;
};
CommandResult judge_command(const evidence::completion::Command& command, const std::string& type,
                            const evidence::completion::Policy& policy, Time now);

}  // namespace muniment::gateway::methods
