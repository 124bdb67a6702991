// Implements the commands task open, list, complete and validate, and validate-todo, for tasks that are completed with
// evidence. Requests to judge a task include the digest of the working tree in the current folder.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <filesystem>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/commands/evidence/judgement.hpp"
#include "cli/exec/command_evidence.hpp"
#include "cli/exec/tree_digest.hpp"
#include "client/connect/pages.hpp"
#include "client/hints.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t content_columns = 80;
constexpr int recorded_shown_max = 20;

void add_if_given(json::Writer& params, std::string_view name, const std::string& value) {
  if (!value.empty()) params.member(name, value);
}

struct TaskOpenOptions {
  std::string content;
  std::string task;
  std::string type;
  std::string required_type;
  std::string workflow;
  std::string run;
  std::string step;
  bool no_evidence = false;
};

void declare_task_open(CLI::App& command, TaskOpenOptions& options) {
  command.add_option("CONTENT", options.content, "Text of the task")->required();
  command.add_option("--task", options.task, "Task id (default: a new one)");
  command.add_option("--type", options.type, "Type of the task, a section of the completion policy");
  command.add_option("--required-type", options.required_type, "Type of evidence that the task needs (default: any)");
  auto* none = command.add_flag("--no-evidence-required", options.no_evidence, "Accept the task without evidence");
  command.add_option("--workflow", options.workflow, "Specification of the blind workflow that completes the task")
      ->excludes(none);
  command.add_option("--run", options.run, "RUN");
  command.add_option("--step", options.step, "Step id");
}

Status open_task(Session& session, const TaskOpenOptions& options) {
  ASSIGN_OR_RETURN(const std::string run_id, session.run_id(options.run));
  json::Writer params;
  params.begin_object().member("run_id", run_id).member("content", options.content);
  add_if_given(params, "task_id", options.task);
  add_if_given(params, "type", options.type);
  add_if_given(params, "required_type", options.required_type);
  add_if_given(params, "step_id", options.step);
  if (options.no_evidence) params.member("requires_evidence", false);
  if (!options.workflow.empty()) {
    ASSIGN_OR_RETURN(const std::string digest, digest_of_workflow(options.workflow, options.content));
    params.member("workflow", digest);
  }
  write_working_tree(params);
  params.end_object();
  ASSIGN_OR_RETURN(const Message answer, session.call("task.open", params.text()));
  if (session.printed_json(answer)) return success();
  const json::Value opened = answer.result();
  session.out().line(fmt::format("task {}  seq {}{}", session.out().one_line(opened["task_id"].string_or("")),
                                 opened["seq"].source(),
                                 opened["duplicate"].as_bool().value_or(false) ? "  (already recorded)" : ""));
  return success();
}

struct TaskListOptions {
  std::string run;
  std::string status;
};

void declare_task_list(CLI::App& command, TaskListOptions& options) {
  command.add_option("--run", options.run, "RUN");
  command.add_option("--status", options.status, "Status of the tasks: open or completed (default: both)");
}

std::vector<std::string> task_row(const Output& out, const json::Value& task) {
  const bool completed = task["status"].string_or("") == "completed";
  std::string verdict = task["verdict"].string_or(completed ? "" : "open");
  return {out.one_line(task["task_id"].string_or("")), completed ? out.tone(Tone::green, verdict) : verdict,
          out.one_line(task["actor"].string_or("")),
          task["content"] ? fit(out.one_line(task["content"].string_or("")), content_columns)
                          : out.tone(Tone::dim, "(erased)")};
}

Status list_tasks(Session& session, const TaskListOptions& options) {
  ASSIGN_OR_RETURN(const std::string run_id, session.run_id(options.run));
  json::Writer params;
  params.begin_object().member("run_id", run_id);
  add_if_given(params, "status", options.status);
  params.end_object();
  Table table({"task", "verdict", "actor", "content"});
  RETURN_IF_ERROR(each_item(session, "task.list", params.text(), "tasks", [&](const json::Value& task) -> Result<bool> {
    if (session.options.json) {
      session.out().json_line(task.source());
    } else {
      table.add(task_row(session.out(), task));
    }
    return true;
  }));
  if (!session.options.json) table.print(session.out());
  return success();
}

struct TaskJudgeOptions {
  std::string task;
  std::vector<std::string> evidence;
  std::string run;
  std::string step;
  bool strict = false;
};

void declare_evidence_and_place(CLI::App& command, TaskJudgeOptions& options) {
  command.add_option("--evidence", options.evidence, "Evidence id; repeat for several")->allow_extra_args(false);
  command.add_flag("--strict", options.strict, "Accept recorded commands only (muniment exec --evidence)");
  command.add_option("--run", options.run, "Run (default: MUNIMENT_RUN, or the open run with the task)");
  command.add_option("--step", options.step, "Step id");
}

void declare_task_validate(CLI::App& command, TaskJudgeOptions& options) {
  command.add_option("TASK", options.task, "Task id")->required();
  declare_evidence_and_place(command, options);
  command.footer("Exits with 1 if the task cannot be completed.");
}

void declare_task_complete(CLI::App& command, TaskJudgeOptions& options) {
  command.add_option("TASK", options.task, "Task id")->required();
  declare_evidence_and_place(command, options);
  command.footer("Exits with 1 if the completion is refused.");
}

void write_evidence_ids(json::Writer& params, const std::vector<std::string>& ids) {
  params.key("evidence_ids").begin_array();
  for (const std::string& id : ids) params.string(id);
  params.end_array();
}

Result<std::string> run_of(Session& session, const TaskJudgeOptions& options) {
  ASSIGN_OR_RETURN(std::string run_id, session.run_id_if_any(options.run));
  if (run_id.empty()) return run_of_task(session, options.task);
  return run_id;
}

std::string judge_params(const std::string& run_id, const TaskJudgeOptions& options) {
  json::Writer params;
  params.begin_object().member("run_id", run_id).member("task_id", options.task);
  write_evidence_ids(params, options.evidence);
  if (options.strict) params.member("strict", true);
  add_if_given(params, "step_id", options.step);
  write_working_tree(params);
  return std::move(params.end_object()).text();
}

// Lists the evidence of the task after a refusal for which none was named.
Status tell_recorded(Session& session, const std::string& run_id, const TaskJudgeOptions& options) {
  if (session.options.json || !options.evidence.empty() || session.exit_code != exit_refused) return success();
  json::Writer params;
  params.begin_object().member("run_id", run_id).member("task_id", options.task).member("limit", recorded_shown_max);
  ASSIGN_OR_RETURN(const Message answer, session.call("evidence.list", params.end_object().text()));
  const Output& out = session.out();
  for (const json::Value item : answer.result()["evidence"])
    out.line(fmt::format("  recorded  --evidence {}  {}", item["evidence_id"].string_or(""),
                         out.one_line(item["type"].string_or(""))));
  return success();
}

Status judge_task(Session& session, const TaskJudgeOptions& options, const char* method, std::string_view good,
                  std::string_view bad) {
  ASSIGN_OR_RETURN(const std::string run_id, run_of(session, options));
  ASSIGN_OR_RETURN(const Message answer, session.call(method, judge_params(run_id, options)));
  RETURN_IF_ERROR(tell_judgement(session, answer, good, bad));
  return tell_recorded(session, run_id, options);
}

Status validate_task(Session& session, const TaskJudgeOptions& options) {
  return judge_task(session, options, "task.validate", "can complete", "cannot complete");
}

Status complete_task(Session& session, const TaskJudgeOptions& options) {
  return judge_task(session, options, "task.complete", "completed", "refused");
}

struct TodoOptions {
  std::string content;
  std::string type;
  std::string required_type;
  bool no_evidence = false;
  TaskJudgeOptions judge;
};

void declare_validate_todo(CLI::App& command, TodoOptions& options) {
  command.add_option("CONTENT", options.content, "Text of the task")->required();
  auto* no_evidence =
      command.add_flag("--no-evidence-required", options.no_evidence, "Accept the task without evidence");
  auto* type = command.add_option("--type", options.type, "Type of the task, a section of the completion policy");
  auto* required = command.add_option("--required-type", options.required_type,
                                      "Type of evidence that the task needs (default: any)");
  command.add_option("--task", options.judge.task, "Opened task of the run with this text")
      ->excludes(no_evidence)
      ->excludes(type)
      ->excludes(required);
  declare_evidence_and_place(command, options.judge);
  command.footer("Exits with 0 if the task can be completed, with 1 if it cannot.");
}

// Rejects a text that differs from the text of the task. Errors: not_found, conflict.
Status check_same_text(Session& session, const std::string& run_id, const TodoOptions& options) {
  ASSIGN_OR_RETURN(const Message answer,
                   session.call("task.list", fmt::format("{{\"run_id\":{},\"task_id\":{}}}", json::quote(run_id),
                                                         json::quote(options.judge.task))));
  for (const json::Value task : answer.result()["tasks"]) {
    if (!task["content"] || task["content"].string_or("") == options.content) return success();
    return Error(Errc::conflict, fmt::format("task {} has the text {}. Repeat it, or use: muniment task validate TASK",
                                             options.judge.task, json::quote(task["content"].string_or(""))));
  }
  return Error(Errc::not_found,
               fmt::format("no task {} in run {}. Open it first: muniment task open --run {} --task {} CONTENT",
                           options.judge.task, run_id, shell_word(run_id), shell_word(options.judge.task)));
}

Status validate_todo(Session& session, const TodoOptions& options) {
  if (!options.judge.task.empty()) {
    ASSIGN_OR_RETURN(const std::string run_id, run_of(session, options.judge));
    RETURN_IF_ERROR(check_same_text(session, run_id, options));
    return validate_task(session, options.judge);
  }
  ASSIGN_OR_RETURN(const std::string run_id, session.run_id_if_any(options.judge.run));
  json::Writer params;
  params.begin_object().member("content", options.content);
  add_if_given(params, "run_id", run_id);
  if (!run_id.empty()) add_if_given(params, "step_id", options.judge.step);
  add_if_given(params, "type", options.type);
  add_if_given(params, "required_type", options.required_type);
  if (options.no_evidence) params.member("requires_evidence", false);
  if (options.judge.strict) params.member("strict", true);
  write_evidence_ids(params, options.judge.evidence);
  params.end_object();
  ASSIGN_OR_RETURN(const Message answer, session.call("task.validate", params.text()));
  return tell_judgement(session, answer, "can complete", "cannot complete");
}

}  // namespace

void add_task_commands(CLI::App& app, Session& session) {
  CLI::App& task = add_group(app, "task", "Open, list, check and complete tasks that require evidence");
  add_command<TaskOpenOptions>(session, task, "open", "Open a task", declare_task_open, open_task);
  add_command<TaskListOptions>(session, task, "list", "List the tasks of a run", declare_task_list, list_tasks);
  add_command<TaskJudgeOptions>(session, task, "complete", "Complete a task with evidence", declare_task_complete,
                                complete_task);
  add_command<TaskJudgeOptions>(session, task, "validate", "Check evidence against an opened task",
                                declare_task_validate, validate_task);
  add_command<TodoOptions>(session, app, "validate-todo", "Check evidence against the text of a task",
                           declare_validate_todo, validate_todo);
}

}  // namespace muniment::cli
