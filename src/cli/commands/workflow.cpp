// Implements the commands workflow run and validate-code, which run a blind workflow and print its result.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/exec/command_evidence.hpp"
#include "cli/executor/executor.hpp"
#include "cli/workflow/workflow.hpp"
#include "evidence/completion/policy.hpp"
#include "evidence/workflow/spec.hpp"

namespace muniment::cli {
namespace {

namespace completion = evidence::completion;

constexpr const char* default_spec = ".muniment/workflow.toml";

struct WorkflowRunOptions {
  std::string spec = default_spec;
  std::string text;  // text of the task; empty: the specification's
  std::string run;
  std::string task;
  std::string isolation;
  std::string output;
};

constexpr const char* workflow_footer =
    "Exits with 0 if all outputs equal the golden files, with 1 if one differs or a step fails, with 130\n"
    "if it was interrupted.";

void declare_common_workflow(CLI::App& command, WorkflowRunOptions& options) {
  command.add_option("--run", options.run, "Run (default: MUNIMENT_RUN, the open run with TASK, or a new run)");
  command.add_option("--task", options.task, "Task of the run that the evidence supports");
  command.add_option("--isolation", options.isolation, "Lowest accepted isolation (default: the specification's)")
      ->check(CLI::IsMember({"none", "partial", "full"}));
  command.add_option("--output", options.output, "New folder that receives the coder's files");
  command.footer(workflow_footer);
}

void declare_workflow_run(CLI::App& command, WorkflowRunOptions& options) {
  command.add_option("SPEC", options.spec, "Specification of the workflow, a TOML file")->required();
  declare_common_workflow(command, options);
}

void declare_validate_code(CLI::App& command, WorkflowRunOptions& options) {
  command.add_option("TASK", options.text, "Text of the task")->required();
  command.add_option("--spec", options.spec, "Specification (default .muniment/workflow.toml)");
  declare_common_workflow(command, options);
}

// A specification with its file.
struct NamedSpec {
  evidence::workflow::Spec spec;
  std::string text;
  std::string folder;
};

Result<NamedSpec> read_spec(const std::string& path, std::string_view task) {
  ASSIGN_OR_RETURN(std::string text, read_named(path, evidence::workflow::spec_bytes_max));
  auto spec = evidence::workflow::parse_spec(text, task);
  if (!spec) return std::move(spec).error().within(path);
  std::error_code failed;
  return NamedSpec{*std::move(spec), std::move(text), std::filesystem::canonical(path, failed).parent_path().string()};
}

struct NamedTask {
  std::string type;
  bool pinned = false;  // it was opened for this workflow
};

// Errors: not_found if the run has no such task; conflict if it was opened for another workflow than `spec`.
Result<NamedTask> find_task(Session& session, const std::string& run_id, const std::string& task_id,
                            const NamedSpec& spec) {
  ASSIGN_OR_RETURN(const Message answer,
                   session.call("task.list", fmt::format("{{\"run_id\":{},\"task_id\":{}}}", json::quote(run_id),
                                                         json::quote(task_id))));
  for (const json::Value task : answer.result()["tasks"]) {
    const std::string pinned = task["workflow"].string_or("");
    if (pinned.empty()) return NamedTask{task["type"].string_or(""), false};
    ASSIGN_OR_RETURN(const std::string digest, digest_of(spec.text, spec.folder, spec.spec));
    if (digest == pinned) return NamedTask{task["type"].string_or(""), true};
    return Error(Errc::conflict, fmt::format("task {} was opened for the workflow {}, and this is {}. Run the "
                                             "specification with which it was opened, unchanged",
                                             task_id, pinned, digest));
  }
  return Error(Errc::not_found,
               fmt::format("no task {} in run {}. Open it first: muniment task open --run {} --task {} CONTENT",
                           task_id, run_id, shell_word(run_id), shell_word(task_id)));
}

Result<completion::Policy> policy_of(Session& session, const std::string& task_type) {
  ASSIGN_OR_RETURN(const Config config, session.config());
  ASSIGN_OR_RETURN(const auto policies, completion::Policies::read(config.completion_policy));
  return policies.of_type(task_type);
}

// The strictest of the specification, the option and the completion policy.
std::string demanded_isolation(const WorkflowRunOptions& options, const evidence::workflow::Spec& spec,
                               const completion::Policy& policy) {
  const std::string& demanded = options.isolation.empty() ? spec.isolation : options.isolation;
  const bool raised = completion::isolation_rank(policy.isolation) > completion::isolation_rank(demanded);
  return raised ? policy.isolation : demanded;
}

// Notes, before the steps, that the policy will refuse the evidence.
Status tell_unpinned(const NamedSpec& spec, const WorkflowRunOptions& options, const NamedTask& task,
                     const completion::Policy& policy) {
  if (options.task.empty() || task.pinned || !policy.strict) return success();
  ASSIGN_OR_RETURN(const std::string digest, digest_of(spec.text, spec.folder, spec.spec));
  if (std::find(policy.workflows.begin(), policy.workflows.end(), digest) != policy.workflows.end()) return success();
  fmt::print(stderr,
             "muniment: task {} was opened without a workflow, and the policy does not list {}, so that it will refuse "
             "the evidence. Open a task for the workflow: muniment task open --workflow {} CONTENT\n",
             escape_for_terminal(options.task), digest, escape_for_terminal(shell_word(options.spec)));
  return success();
}

Result<std::string> start_run(Session& session, const std::string& goal) {
  json::Writer params;
  params.begin_object().key("agent").begin_object().member("name", "workflow").end_object();
  params.member("goal", preview(goal, 1000)).end_object();
  ASSIGN_OR_RETURN(const Message answer, session.call("run.start", params.text()));
  return answer.result()["run_id"].string_or("");
}

std::string result_json(const std::string& run_id, const WorkflowResult& result) {
  json::Writer out;
  out.begin_object().member("run_id", run_id).member("passed", result.passed).member("reason", result.reason);
  out.member("isolation_demanded", result.demanded).member("digest", result.digest).key("steps").begin_array();
  for (const RecordedStep& step : result.steps) {
    const StepOutcome& outcome = step.outcome;
    out.begin_object().member("name", step.name).member("command_id", step.command_id).member("ending", step.ending());
    out.member("passed", outcome.good()).member("duration_us", outcome.duration_us);
    out.member("isolation", outcome.isolation.level).member("missing", outcome.isolation.missing);
    out.member("refused", outcome.refused).member("omitted", outcome.omitted).key("refusals").begin_array();
    for (const Refusal& refusal : outcome.refusals) {
      out.begin_object().member("operation", refusal.operation).member("path", refusal.path);
      out.member("program", refusal.program).member("count", refusal.count).end_object();
    }
    out.end_array().end_object();
  }
  out.end_array().key("evidence").begin_object();
  for (const WorkflowEvidence& one : result.evidence) out.member(one.type, one.evidence_id);
  out.end_object().member("comparison", result.comparison).end_object();
  return std::move(out).text();
}

void print_result(const Output& out, const std::string& run_id, const WorkflowResult& result) {
  for (const RecordedStep& step : result.steps) {
    const StepOutcome& outcome = step.outcome;
    const bool writer = step.name == "spec_writer";
    std::string text = fmt::format("{:<12} {}  {}", step.name, step.ending(), human_duration(outcome.duration_us));
    if (!writer) text += fmt::format("  isolation {}", outcome.isolation.level);
    for (const std::string& missing : outcome.isolation.missing) text += fmt::format(" ({})", out.one_line(missing));
    if (outcome.refused > 0)
      text += fmt::format("  {} access{} refused", outcome.refused, outcome.refused == 1 ? "" : "es");
    out.line(text);
    for (const Refusal& refusal : outcome.refusals)
      out.line(fmt::format("  refused    {} {}  {}", refusal.operation, out.one_line(refusal.path),
                           out.one_line(refusal.program)));
    if (outcome.omitted > 0) out.line(fmt::format("  and {} more, not recorded one by one", outcome.omitted));
  }
  out.line(fmt::format("{:<12} {}", result.passed ? out.tone(Tone::green, "passed") : out.tone(Tone::red, "failed"),
                       out.one_line(result.reason)));
  std::string_view rest = result.comparison;
  take_line(rest);  // repeats the reason
  while (!rest.empty()) {
    const auto line = take_line(rest);
    out.line("  " + out.one_line(line.value_or(rest)));
    if (!line) break;
  }
  for (const WorkflowEvidence& one : result.evidence)
    out.line(fmt::format("evidence     {}  {}", one.evidence_id, one.type));
  out.line("run          " + out.one_line(run_id));
}

// The folder must be new, in a folder that exists.
Status check_output(const std::string& output) {
  if (output.empty()) return success();
  std::error_code failed;
  if (std::filesystem::exists(output, failed))
    return Error(Errc::conflict, fmt::format("--output {} exists. Name a new folder", output));
  auto path = std::filesystem::absolute(output, failed).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  if (std::filesystem::is_directory(path.parent_path(), failed)) return success();
  return Error(Errc::not_found, fmt::format("--output: there is no folder {}", path.parent_path().string()));
}

Status run_workflow(Session& session, const WorkflowRunOptions& options) {
  ASSIGN_OR_RETURN(const auto executed, run_in_executor(session, true));
  if (executed) {
    session.exit_code = *executed;
    return success();
  }
  session.observe();
  ASSIGN_OR_RETURN(const NamedSpec named, read_spec(options.spec, options.text));
  const evidence::workflow::Spec& spec = named.spec;
  RETURN_IF_ERROR(check_output(options.output));
  ASSIGN_OR_RETURN(std::string run_id, session.run_id_if_any(options.run));
  if (run_id.empty() && !options.task.empty()) {
    ASSIGN_OR_RETURN(run_id, run_of_task(session, options.task));
  }
  NamedTask task;
  if (!options.task.empty()) {
    ASSIGN_OR_RETURN(task, find_task(session, run_id, options.task, named));
  }
  ASSIGN_OR_RETURN(const completion::Policy policy, policy_of(session, task.type));
  RETURN_IF_ERROR(tell_unpinned(named, options, task, policy));
  const std::string demanded = demanded_isolation(options, spec, policy);
  const bool own_run = run_id.empty();
  if (own_run) {
    ASSIGN_OR_RETURN(run_id, start_run(session, spec.task));
  }
  const auto result =
      Workflow(session, spec, named.folder, {run_id, options.task, options.output, named.text}, demanded).run();
  if (own_run) {
    const bool passed = result.ok() && result->passed;
    const auto ended = session.call("run.end", fmt::format("{{\"run_id\":{},\"outcome\":\"{}\"}}", json::quote(run_id),
                                                           passed ? "success" : "failure"));
    session.finish_quietly("the end of the run", ended ? success() : Status(ended.error()));
  }
  if (!result) return result.error();
  if (!result->passed) session.exit_code = result->interrupted ? exit_interrupted : exit_refused;
  if (session.options.json) {
    session.out().json_line(result_json(run_id, *result));
  } else {
    print_result(session.out(), run_id, *result);
  }
  return success();
}

struct WorkflowDigestOptions {
  std::string spec;
  std::string text;
};

void declare_workflow_digest(CLI::App& command, WorkflowDigestOptions& options) {
  command.add_option("SPEC", options.spec, "Specification of the workflow, a TOML file")->required();
  command.add_option("--text", options.text, "Text of the task, if the specification has none");
}

Status print_digest(Session& session, const WorkflowDigestOptions& options) {
  ASSIGN_OR_RETURN(const std::string digest, digest_of_workflow(options.spec, options.text));
  if (session.options.json) {
    session.out().json_line(fmt::format("{{\"digest\":\"{}\"}}", digest));
  } else {
    session.out().line(digest);
  }
  return success();
}

}  // namespace

Result<std::string> digest_of_workflow(const std::string& path, const std::string& text) {
  auto named = read_spec(path, {});
  if (!named && !text.empty()) named = read_spec(path, text);
  if (!named) return named.error();
  return digest_of(named->text, named->folder, named->spec);
}

void add_workflow_commands(CLI::App& app, Session& session) {
  CLI::App& group = add_group(app, "workflow", "Run blind workflows: spec writer, coder and tester");
  add_command<WorkflowRunOptions>(session, group, "run", "Run a blind workflow and compare its outputs",
                                  declare_workflow_run, run_workflow);
  add_command<WorkflowDigestOptions>(session, group, "digest", "Print the digest of a workflow, by which tasks name it",
                                     declare_workflow_digest, print_digest);
  add_command<WorkflowRunOptions>(session, app, "validate-code", "Run the project's blind workflow for a task",
                                  declare_validate_code, run_workflow);
}

}  // namespace muniment::cli
