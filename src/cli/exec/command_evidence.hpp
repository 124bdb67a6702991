// Asks the daemon to make evidence of a command that was recorded: the report that it wrote, and which tests changed.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/commands.hpp"

namespace muniment::cli {

struct EvidenceRequest {
  std::string type;    // of the evidence; empty: none is wanted
  std::string task;    // the task that it is for; empty: none
  std::string report;  // the file that the command writes; empty: its output is the report
  std::string reason;  // why tests were changed
  bool scrub = false;  // obvious secrets are replaced in the report that is kept
};

// Returns the open run that has an open task of this id. Errors: not_found where none has one, conflict where several
// have.
Result<std::string> run_of_task(Session& session, const std::string& task_id);

// Returns the digest of the working tree at which the task was opened. Errors: not_found for a task that the run does
// not have.
Result<std::string> tree_of_task(Session& session, const std::string& run_id, const std::string& task_id);

// Records the evidence and says on standard error what came of it. False: the command does not count as passed.
Result<bool> record_evidence(Session& session, const EvidenceRequest& request, const std::string& run_id,
                             const std::string& step_id, const std::string& command_id, const std::string& folder,
                             const std::string& task_tree);

}  // namespace muniment::cli
