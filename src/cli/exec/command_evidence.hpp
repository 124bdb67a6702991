// Records evidence of a recorded command: the report that it wrote and the tests that changed.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/commands.hpp"
#include "cli/exec/evidence_terms.hpp"
#include "cli/exec/git.hpp"

namespace muniment::cli {

struct EvidenceRequest {
  std::string type;                  // evidence type; empty: no evidence
  std::string task;                  // task that the evidence supports; empty: none
  std::vector<std::string> reports;  // report files of the command, folders and patterns; empty: its output
  std::string reason;                // reason for test changes
  EvidenceTerms terms;
  bool scrub = false;  // replace obvious secrets in the recorded reports
  Time started{};      // start of the command: reports that are older are not its own
};

// Returns the open run with an open task of this id. Errors: not_found if there is none, conflict if there are several.
Result<std::string> run_of_task(Session& session, const std::string& task_id);

// Errors: not_found if the run has no such task.
Result<TaskBase> base_of_task(Session& session, const std::string& run_id, const std::string& task_id);

// Records the evidence and prints the result on standard error. Returns false if the command does not count as passed.
Result<bool> record_evidence(Session& session, const EvidenceRequest& request, const std::string& run_id,
                             const std::string& step_id, const std::string& command_id, const std::string& folder,
                             const TaskBase& base);

}  // namespace muniment::cli
