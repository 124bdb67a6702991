// A blind workflow: the spec writer makes a specification and golden files, the coder works without a view of the
// golden files, and the tester's outputs are compared with them. docs/evidence.md describes it for users.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/workflow/recorded_step.hpp"
#include "cli/workflow/workspace.hpp"
#include "client/connect/session.hpp"
#include "evidence/workflow/spec.hpp"

namespace muniment::cli {

struct WorkflowOptions {
  std::string run_id;         // an open run
  std::string task;           // task of the run that the evidence supports; empty: none
  std::string output;         // folder that receives the implementation; empty: none
  std::string specification;  // text of the specification's file
};

struct WorkflowEvidence {
  std::string type, evidence_id;
};

struct WorkflowResult {
  bool passed = false;
  bool interrupted = false;
  std::string reason;
  std::string demanded;  // isolation
  std::vector<RecordedStep> steps;
  std::vector<WorkflowEvidence> evidence;
  std::string comparison;  // text of the validation evidence: one line for each pair
  std::string digest;      // of the workflow
};

class Workflow {
 public:
  // `folder` is the folder of the specification's file; `demanded` is the isolation required.
  Workflow(Session& session, const evidence::workflow::Spec& spec, std::string folder, WorkflowOptions options,
           std::string demanded)
      : spec_(spec),
        folder_(std::move(folder)),
        options_(std::move(options)),
        place_{session, options_.run_id, std::move(demanded)} {}

  // Runs the three steps. A step that fails and outputs that differ are results. Errors: those of the daemon and of the
  // system, and denied if the demanded isolation cannot be reached.
  Result<WorkflowResult> run();

 private:
  struct StoredFile {
    std::string name, artifact_id;
  };

  Status prepare(const Workspace& workspace);
  Status write_specification(const Workspace& workspace);
  Status code(const Workspace& workspace);
  Status test();
  Status check_golden_files() const;
  Result<bool> changed();
  Result<std::vector<StoredFile>> store_files(const std::string& folder, const char* what);
  Result<std::string> store(const Fd& file, const std::string& step, const char* what, const std::string& name);
  Result<std::string> output_of(const std::string& output);
  Status record_evidence(const std::string& type, const RecordedStep& step, const std::string& workflow);
  Status read_comparison(const std::string& evidence_id);
  StepPlan plan_of(const evidence::workflow::Step& step, const ResolvedCommand& command, std::string folder,
                   bool confined) const;
  Status run_next(const char* name, const StepPlan& plan);
  bool stopped() const { return !result_.reason.empty(); }

  const evidence::workflow::Spec& spec_;
  const std::string folder_;
  const WorkflowOptions options_;
  StepPlace place_;
  StopSignals stop_;
  WorkflowResult result_;
  ResolvedCommand spec_writer_, coder_, tester_;
  std::string specification_folder_, golden_folder_, coder_folder_, tester_folder_;
  std::vector<StoredFile> specification_, golden_;
  std::string implementation_;  // id of the artifact
};

}  // namespace muniment::cli
