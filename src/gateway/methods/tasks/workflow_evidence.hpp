// Reads the facts of a blind workflow from the log: its files, the order of its steps and the comparison of the
// tester's outputs with the golden files. The client only names artifacts and commands.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "events/event.hpp"
#include "evidence/reports/report.hpp"
#include "gateway/call.hpp"
#include "store/files/artifact_row.hpp"
#include "store/tables/runs.hpp"

namespace muniment::gateway::methods {

struct WorkflowFacts {
  std::string json;                                 // the member `workflow` of the evidence
  std::string text;                                 // the files or the comparison, one line each
  std::optional<evidence::reports::Report> report;  // counts of the comparison, in the format golden
  std::vector<std::string> artifacts;               // ids of the files, the golden files and the outputs
  bool observed = true;                             // false: the daemon did not observe the coder's command
  std::string coder_isolation;                      // isolation of the coder; empty: not confined, or no coder is named
  std::string digest;                               // of the workflow; empty: not stated
  bool golden_empty = false;                        // no golden file of the pairs contains more than white space
  bool golden_told = false;                         // every golden file of the pairs is a file of the specification
};

// Returns the artifact of the run. Errors: not_found, conflict if it is erased.
Result<store::ArtifactRow> artifact_of_run(Call& call, const store::Run& run, const std::string& id);

// `started` is the command.started event of the evidence's command. Reads the parameter `workflow`. Errors: those of
// artifact_of_run; invalid_argument for pairs without coder_id; conflict if the order of artifacts and commands in the
// log contradicts a blind workflow; corrupt for a damaged artifact.
Result<WorkflowFacts> workflow_facts(Call& call, const store::Run& run, const events::Event& started);

}  // namespace muniment::gateway::methods
