// The criterion of code validation: three blind workflows in a temporary folder.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "cli/meta/criteria.hpp"
#include "cli/workflow/workflow.hpp"
#include "evidence/workflow/spec.hpp"

namespace muniment::cli {
namespace {

// {} is the coder's script.
constexpr const char* spec_toml = R"(task = "Write greet.sh, which greets the person in its first argument"
[spec_writer]
command = ["/bin/sh", "-c", '''echo 'greet.sh NAME prints: Hello, NAME!' > "$SPECIFICATION/spec.txt"
printf 'Hello, Ada!\n' > "$GOLDEN/greeting.txt"''']
seconds = 60
[coder]
command = ["/bin/sh", "-c", '''{}''']
seconds = 60
[tester]
command = ["/bin/sh", "-c", '''exec sh "$IMPLEMENTATION/greet.sh" Ada''']
seconds = 60
[compare]
"greeting.txt" = "stdout"
)";
constexpr const char* correct_coder = R"(printf 'echo "Hello, $1!"\n' > greet.sh)";
constexpr const char* wrong_coder = R"(printf 'echo "Hello; $1!"\n' > greet.sh)";
constexpr const char* reading_coder =
    R"(cat "$(dirname "$SPECIFICATION")/golden/greeting.txt" > seen && printf 'cat "$IMPLEMENTATION/seen"\n' > greet.sh)";
constexpr std::string_view golden_file = "/golden/greeting.txt";

Result<WorkflowResult> run_coder(MetaRun& run, const char* coder) {
  const std::string text = fmt::format(spec_toml, coder);
  ASSIGN_OR_RETURN(const evidence::workflow::Spec spec, evidence::workflow::parse_spec(text));
  ASSIGN_OR_RETURN(const Workspace place, Workspace::create());
  ASSIGN_OR_RETURN(const std::string folder, place.folder("project", false));
  ASSIGN_OR_RETURN(const std::string digest, digest_of(text, folder, spec));
  json::Writer task;
  task.begin_object().member("run_id", run.run_id).member("content", spec.task).member("workflow", digest).end_object();
  ASSIGN_OR_RETURN(const Message opened, run.session.call("task.open", task.text()));
  const std::string task_id = opened.result()["task_id"].string_or("");
  auto result = Workflow(run.session, spec, folder, {run.run_id, task_id, "", text}, "full").run();
  run.interrupted = result && result->interrupted;
  return run.interrupted ? Error(Errc::conflict, "a signal interrupted the workflow") : std::move(result);
}

bool is_of_golden_file(const Refusal& refusal) { return refusal.path.ends_with(golden_file); }

// Returns whether the log has the refused access to the golden file.
Result<bool> log_has_refusal(MetaRun& run) {
  ASSIGN_OR_RETURN(const Message page,
                   run.session.call("event.list", fmt::format(R"({{"run_id":{},"types":["sandbox.refused"]}})",
                                                              json::quote(run.run_id))));
  for (const json::Value event : page.result()["events"]) {
    if (event["body"]["path"].string_or("").ends_with(golden_file)) return true;
  }
  return false;
}

Status check_correct_coder(MetaRun& run) {
  ASSIGN_OR_RETURN(const WorkflowResult result, run_coder(run, correct_coder));
  if (!result.passed) return Error(Errc::conflict, "the workflow of a correct coder failed: " + result.reason);
  if (result.evidence.empty() || result.evidence.back().type != "validation")
    return Error(Errc::conflict, "the workflow of a correct coder recorded no validation");
  ASSIGN_OR_RETURN(
      const Message checked,
      run.session.call("evidence.check", fmt::format(R"({{"evidence_id":"{}"}})", result.evidence.back().evidence_id)));
  if (checked.result()["intact"].as_bool().value_or(false)) return success();
  return Error(Errc::conflict,
               "the validation of a correct coder is damaged: " + checked.result()["reason"].string_or(""));
}

}  // namespace

Result<std::string> code_validation(MetaRun& run) {
  RETURN_IF_ERROR(check_correct_coder(run));
  ASSIGN_OR_RETURN(const WorkflowResult wrong, run_coder(run, wrong_coder));
  if (wrong.passed || wrong.steps.size() != 3 || !wrong.steps.back().outcome.good())
    return Error(Errc::conflict, wrong.passed ? "the workflow of a wrong coder passed"
                                              : "the workflow of a wrong coder was not compared: " + wrong.reason);
  ASSIGN_OR_RETURN(const WorkflowResult reading, run_coder(run, reading_coder));
  if (reading.passed || reading.steps.size() != 2)
    return Error(Errc::conflict, reading.passed ? "the workflow of a coder that reads the golden file passed"
                                                : "a coder that reads the golden file was not stopped");
  const StepOutcome& outcome = reading.steps.back().outcome;
  if (!std::ranges::any_of(outcome.refusals, is_of_golden_file))
    return Error(Errc::conflict, "the refused access to the golden file was not noticed");
  ASSIGN_OR_RETURN(const bool logged, log_has_refusal(run));
  if (!logged) return Error(Errc::conflict, "the refused access to the golden file is not in the log");
  return fmt::format(
      "isolation {}: a correct coder passed, a wrong one failed, and one that read the golden file was refused",
      outcome.isolation.level);
}

}  // namespace muniment::cli
