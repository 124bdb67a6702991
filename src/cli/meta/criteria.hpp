// The criteria of the meta-validation. Each one uses the running daemon as a client does, in the run of the validation.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/meta/report.hpp"
#include "client/connect/session.hpp"

namespace muniment::cli {

struct MetaRun {
  Session& session;
  std::string commands;      // commands of muniment, as --command-tree prints them
  std::string run_id;        // an open run
  bool interrupted = false;  // a signal ended a workflow: nothing more is checked
};

// Checks a criterion. Returns what was checked. An error is the reason why the criterion is not met.
using Criterion = Result<std::string> (*)(MetaRun& run);

// code.cpp: blind workflows with a correct coder, a wrong one, and one that reads the golden files.
Result<std::string> code_validation(MetaRun& run);
// tasks.cpp: the gate of tasks, as the seed's integrations use it.
Result<std::string> design_review(MetaRun& run);
Result<std::string> todo_integration(MetaRun& run);
Result<std::string> beads_integration(MetaRun& run);
// interface.cpp: the texts of methods and commands, and both protocols of the socket.
Result<std::string> documentation(MetaRun& run);
Result<std::string> agent_interface(MetaRun& run);

// A report that is recorded as evidence.
struct RecordedReport {
  std::vector<CriterionResult> results;  // with the criterion of the meta-validation itself
  std::string evidence_id;               // empty: it could not be recorded
};

// meta_validation.cpp: adds the seventh criterion to the other results, records the report and reads it back.
RecordedReport record_report(MetaRun& run, std::vector<CriterionResult> results);

}  // namespace muniment::cli
