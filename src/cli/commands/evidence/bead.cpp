// Implements the commands bead create, attach, close and status: issues of Beads that close only with evidence. The
// program bd closes an issue after the daemon has completed its task.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/crypto/sha256.hpp"
#include "base/text.hpp"
#include "cli/bead/bd_program.hpp"
#include "cli/bead/issue_task.hpp"
#include "cli/commands.hpp"
#include "cli/commands/evidence/judgement.hpp"
#include "cli/exec/tree_digest.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t title_columns = 60;
constexpr std::size_t title_bytes_max = 16 * 1024;  // the text of a task

struct BeadOptions {
  BdProgram bd;
  std::optional<std::string> issue;
  std::string title;
  std::string required_type;
  bool no_evidence = false;
  std::vector<std::string> evidence;
  std::string run;
  std::string reason;
  bool strict = false;
  bool all = false;
};

void declare_common(CLI::App& command, BeadOptions& options) {
  command.add_option("--run", options.run,
                     "Run of a new task (default: MUNIMENT_RUN, otherwise that of the agent beads)");
  command.add_option("--bd", options.bd.path, "Program bd (default: MUNIMENT_BD, otherwise bd)")->type_name("PROGRAM");
  command.add_option("--timeout", options.bd.seconds_max, "Time limit of a call of bd in seconds (default 60)")
      ->check(CLI::Range(std::int64_t{1}, limits::bd_seconds_max))
      ->type_name("SECONDS");
}

CLI::Option* declare_issue(CLI::App& command, BeadOptions& options, const char* description) {
  return command.add_option_function<std::string>(
      "ISSUE", [&options](const std::string& id) { options.issue = id; }, description);
}

void declare_create(CLI::App& command, BeadOptions& options) {
  command.add_option("TITLE", options.title, "Title of the issue and text of its task")->required();
  command.add_option("--required-type", options.required_type, "Type of evidence that the task needs (default: any)");
  command.add_flag("--no-evidence-required", options.no_evidence, "Accept the task without evidence");
  declare_common(command, options);
}

void declare_attach(CLI::App& command, BeadOptions& options) {
  declare_issue(command, options, "Id of the issue")->required();
  command.add_option("EVIDENCE", options.evidence, "Evidence id; several are allowed")->required();
  declare_common(command, options);
}

void declare_close(CLI::App& command, BeadOptions& options) {
  declare_issue(command, options, "Id of the issue")->required();
  command.add_option("--evidence", options.evidence, "Use only this evidence; repeatable (default: all attached)")
      ->allow_extra_args(false);
  command.add_option("--reason", options.reason, "Reason in bd (default: names the run and the verdict)");
  command.add_flag("--no-evidence-required", options.no_evidence, "Accept a task that was opened without this need");
  command.add_flag("--strict", options.strict, "Accept recorded commands only (muniment exec --evidence)");
  declare_common(command, options);
  command.footer("Exits with 1 if the daemon refuses the completion; the issue then remains open.");
}

void declare_status(CLI::App& command, BeadOptions& options) {
  declare_issue(command, options, "Id of the issue (default: all issues with a task)");
  command.add_flag("--all", options.all, "Include closed issues without a task in the log");
  declare_common(command, options);
  command.footer(
      "Exits with 1 if an issue cannot be read, or was closed in bd while its task is open, which is recorded as a\n"
      "violation.");
}

BdProgram program_of(const BeadOptions& options) {
  BdProgram bd = options.bd;
  const char* const chosen = std::getenv("MUNIMENT_BD");
  if (bd.path.empty()) bd.path = chosen != nullptr && *chosen != '\0' ? chosen : "bd";
  return bd;
}

// The reply names the issue with its full id, since bd accepts abbreviated ones.
Result<BdIssue> show_issue(const BdProgram& bd, const std::string& id) {
  RETURN_IF_ERROR(check_issue_id(id));
  ASSIGN_OR_RETURN(const std::string output, run_bd(bd, {"show", id}));
  return parse_issue(output, "bd show");
}

Status create(Session& session, const BeadOptions& options) {
  if (options.title.empty() || options.title.size() > title_bytes_max)
    return Error(Errc::invalid_argument,
                 fmt::format("TITLE: expected 1 to {} bytes, got {}", title_bytes_max, options.title.size()));
  ASSIGN_OR_RETURN(const std::string run_id, session.run_id_if_any(options.run));
  RETURN_IF_ERROR(session.client());  // an issue without a task is created only if the daemon fails in between
  ASSIGN_OR_RETURN(const std::string output, run_bd(program_of(options), {"create", "--title=" + options.title}));
  ASSIGN_OR_RETURN(const BdIssue issue, parse_issue(output, "bd create"));
  ASSIGN_OR_RETURN(const auto known, find_issue_tasks(session, run_id, {issue}));
  if (!known.empty()) {
    return Error(Errc::conflict,
                 fmt::format("bd created issue {}, but run {} has a task of this id. Rename one database of bd",
                             issue.id, known.begin()->second.run_id));
  }
  auto task = open_issue_task(session, run_id, issue, {!options.no_evidence, options.required_type});
  if (!task) return std::move(task).error().within("issue " + issue.id + " is created in bd, but its task is not open");
  if (session.options.json) {
    session.out().json_line(
        json::Writer().begin_object().member("issue", issue.id).member("run_id", task->run_id).end_object().text());
  } else {
    session.out().line(fmt::format("issue {}  in {}", issue.id, task->run_id));
  }
  return success();
}

// Errors: not_found, with the first piece that the ledger does not have.
Status check_evidence_exists(Session& session, const std::vector<std::string>& ids) {
  for (const std::string& id : ids) {
    ASSIGN_OR_RETURN(const Message answer,
                     session.call("evidence.check", fmt::format("{{\"evidence_id\":{}}}", json::quote(id))));
    if (!answer.result()["exists"].as_bool().value_or(false)) {
      return Error(Errc::not_found, fmt::format("no evidence {}. Nothing was attached. List it: muniment list-evidence",
                                                shell_word(preview(id, 100))));
    }
  }
  return success();
}

Status attach(Session& session, const BeadOptions& options) {
  const BdProgram bd = program_of(options);
  RETURN_IF_ERROR(check_evidence_exists(session, options.evidence));
  ASSIGN_OR_RETURN(const std::string run_id, session.run_id_if_any(options.run));
  ASSIGN_OR_RETURN(const BdIssue issue, show_issue(bd, *options.issue));
  ASSIGN_OR_RETURN(const IssueTask task, open_issue_task(session, run_id, issue));
  ASSIGN_OR_RETURN(auto attached, attached_evidence(session, task.run_id));
  std::vector<std::string>& ids = attached[issue.id];
  for (const std::string& id : options.evidence) {
    if (std::ranges::find(ids, id) != ids.end()) continue;
    if (ids.size() == limits::bead_evidence_max) {
      return Error(Errc::over_budget, fmt::format("issue {} has {} pieces of evidence, the maximum. Close it with some "
                                                  "of them: muniment bead close {} --evidence ID",
                                                  issue.id, ids.size(), shell_word(issue.id)));
    }
    json::Writer body;
    body.begin_object().member("task_id", issue.id).member("evidence_id", id).end_object();
    RETURN_IF_ERROR(
        session.call("event.append", fmt::format("{{\"run_id\":{},\"type\":\"{}\",\"body\":{}}}",
                                                 json::quote(task.run_id), evidence_attached_event, body.text())));
    ids.push_back(id);
  }
  ASSIGN_OR_RETURN(const std::string metadata, issue_metadata(session, task.run_id, ids));
  const auto updated = run_bd(bd, {"update", issue.id, "--metadata", metadata});
  if (!updated) {
    Error error = updated.error();
    error.message += ". The evidence is attached in the log; repeat the command to add it to the issue";
    return error;
  }
  if (session.options.json) {
    json::Writer out;
    out.begin_object().member("issue", issue.id).member("run_id", task.run_id).member("evidence", ids).end_object();
    session.out().json_line(out.text());
  } else {
    session.out().line(fmt::format("issue {}  evidence {}  in {}", issue.id, ids.size(), task.run_id));
  }
  return success();
}

Result<std::vector<std::string>> evidence_to_use(Session& session, const BeadOptions& options, const BdIssue& issue,
                                                 const IssueTask& task) {
  if (task.completed) return task.evidence;
  if (!options.evidence.empty()) return options.evidence;
  ASSIGN_OR_RETURN(auto attached, attached_evidence(session, task.run_id));
  return std::move(attached[issue.id]);
}

Result<Message> complete(Session& session, const BeadOptions& options, const BdIssue& issue, const IssueTask& task,
                         const std::vector<std::string>& ids) {
  json::Writer params;
  params.begin_object().member("run_id", task.run_id).member("task_id", issue.id).member("evidence_ids", ids);
  if (options.strict) params.member("strict", true);
  write_working_tree(params);
  params.end_object();
  return session.call("task.complete", params.text());
}

// Closes an issue whose task is completed. Errors: those of bd, with the state of both programs.
Status close_in_bd(const BdProgram& bd, const BeadOptions& options, const BdIssue& issue, const IssueTask& task,
                   const std::vector<std::string>& evidence) {
  if (issue.closed()) return success();
  const std::string reason = !options.reason.empty()
                                 ? options.reason
                                 : fmt::format("Completed {} evidence in Muniment: run {}, verdict {}",
                                               evidence.empty() ? "without" : "with", task.run_id, task.verdict);
  const auto close = [&]() -> Status {
    ASSIGN_OR_RETURN(const std::string output, run_bd(bd, {"close", issue.id, "--reason=" + reason}));
    ASSIGN_OR_RETURN(const BdIssue closed, parse_issue(output, "bd close"));
    if (closed.id == issue.id && closed.closed()) return success();
    return Error(Errc::conflict, fmt::format("bd close answered with issue {} of status {}", closed.id, closed.status));
  };
  Status closed = close();
  if (closed) return success();
  Error error = std::move(closed).error();
  error.message += fmt::format(
      ". The task is completed in Muniment, but the issue may be open in bd. Correct the cause and repeat: "
      "muniment bead close {}",
      shell_word(issue.id));
  return error;
}

Status close_issue(Session& session, const BeadOptions& options) {
  const BdProgram bd = program_of(options);
  ASSIGN_OR_RETURN(const std::string run_id, session.run_id_if_any(options.run));
  ASSIGN_OR_RETURN(const BdIssue issue, show_issue(bd, *options.issue));
  ASSIGN_OR_RETURN(IssueTask task, open_issue_task(session, run_id, issue));
  const bool before = task.completed;
  ASSIGN_OR_RETURN(const std::vector<std::string> evidence, evidence_to_use(session, options, issue, task));
  // The user who closes decides whether an issue needs evidence, not the one who opened its task.
  if (evidence.empty() && !task.requires_evidence && (!options.no_evidence || options.strict))
    return Error(Errc::conflict,
                 fmt::format("issue {} has no evidence, and its task in run {} requires none. Attach evidence, or "
                             "accept this: muniment bead close {} --no-evidence-required",
                             issue.id, task.run_id, shell_word(issue.id)));
  if (!before) {
    ASSIGN_OR_RETURN(const Message answer, complete(session, options, issue, task, evidence));
    task.completed = answer.result()["can_complete"].as_bool().value_or(false);
    task.verdict = answer.result()["verdict"].string_or("");
    if (!task.completed) {
      RETURN_IF_ERROR(tell_judgement(session, answer, "completed", "refused"));
      if (evidence.empty() && !session.options.json)
        session.out().line(session.out().advised(
            fmt::format("  Attach evidence, then repeat: muniment bead attach {} EVIDENCE", shell_word(issue.id))));
      return success();
    }
  }
  RETURN_IF_ERROR(close_in_bd(bd, options, issue, task, evidence));
  if (session.options.json) {
    json::Writer out;
    out.begin_object().member("issue", issue.id).member("run_id", task.run_id).member("verdict", task.verdict);
    out.member("completed_before", before).member("closed_before", issue.closed()).end_object();
    session.out().json_line(out.text());
    return success();
  }
  session.out().line(fmt::format("{}  {}  {}{}{}{}", session.out().tone(Tone::green, "closed"), issue.id, task.verdict,
                                 evidence.empty() ? "  (without evidence)" : "",
                                 before ? "  (task already completed)" : "",
                                 issue.closed() ? "  (already closed in bd)" : ""));
  return success();
}

// An issue of bd and its task.
struct IssueState {
  BdIssue issue;
  IssueTask task;
  bool known = false;           // the log has its task
  bool closed_outside = false;  // closed in bd, and its task is not completed
  bool recorded = false;        // the log has this violation
  std::string unrecorded;       // reason why it does not
  std::vector<std::string> evidence;

  std::string_view word() const {
    if (closed_outside) return "closed outside";
    if (!known) return "no task";
    return task.completed ? (issue.closed() ? "closed" : "completed") : "open";
  }
};

// Records that the issue was closed outside, once for each time of closing. The daemon adds violation.detected.
Status record_closed_outside(Session& session, IssueState& state) {
  if (!state.known || !state.task.run_open) {
    state.unrecorded = "no open run has its task";
    return success();
  }
  json::Writer body;
  body.begin_object().member("task_id", state.issue.id).member("closed_at", state.issue.closed_at).end_object();
  json::Writer params;
  params.begin_object().member("run_id", state.task.run_id).member("type", issue_closed_event);
  params.raw_member("body", body.text()).key("_meta").begin_object();
  const Hash closing = sha256({state.issue.id, " ", state.issue.closed_at});
  params.member("idempotency_key", fmt::format("{} {}", issue_closed_event, to_hex(closing)));
  params.end_object().end_object();
  const auto appended = session.call("event.append", params.text());
  state.recorded = appended.ok();
  if (!appended) state.unrecorded = appended.error().message;
  if (!appended && is_transient(appended.error().code)) return appended.error();
  return success();
}

struct IssueStates {
  std::vector<IssueState> shown;
  std::size_t unknown = 0;            // closed issues without a task that are not shown
  std::vector<std::string> problems;  // issues that cannot be read
};

Result<IssueStates> read_states(Session& session, const BeadOptions& options) {
  const BdProgram bd = program_of(options);
  ASSIGN_OR_RETURN(const std::string run_id, session.run_id_if_any(options.run));
  BdIssues listed;
  if (options.issue) {
    ASSIGN_OR_RETURN(BdIssue one, show_issue(bd, *options.issue));
    listed.issues.push_back(std::move(one));
  } else {
    ASSIGN_OR_RETURN(const std::string output, run_bd(bd, {"list", "--all", "--limit=0"}));
    ASSIGN_OR_RETURN(listed, parse_issues(output, "bd list"));
  }
  ASSIGN_OR_RETURN(const auto tasks, find_issue_tasks(session, run_id, listed.issues));
  std::map<std::string, std::map<std::string, std::vector<std::string>>> attached;  // by run
  IssueStates states;
  states.problems = std::move(listed.problems);
  for (BdIssue& issue : listed.issues) {
    IssueState state;
    state.issue = std::move(issue);
    if (const auto task = tasks.find(state.issue.id); task != tasks.end()) {
      state.known = true;
      state.task = task->second;
      if (!attached.contains(state.task.run_id)) {
        ASSIGN_OR_RETURN(attached[state.task.run_id], attached_evidence(session, state.task.run_id));
      }
      state.evidence = attached[state.task.run_id][state.issue.id];
    }
    state.closed_outside = state.issue.closed() && !state.task.completed;
    const bool shown = state.known || state.issue.marked || options.issue || (options.all && state.closed_outside);
    if (!shown && state.closed_outside) ++states.unknown;
    if (shown) states.shown.push_back(std::move(state));
  }
  return states;
}

std::string state_json(const IssueState& state) {
  json::Writer out;
  out.begin_object().member("issue", state.issue.id).member("title", state.issue.title);
  out.member("bd_status", state.issue.status).member("state", state.word());
  if (state.known) out.member("run_id", state.task.run_id);
  if (!state.task.verdict.empty()) out.member("verdict", state.task.verdict);
  out.member("evidence", state.evidence);
  if (state.closed_outside) out.member("recorded", state.recorded);
  return std::move(out.end_object()).text();
}

void print_states(const Output& out, const std::vector<IssueState>& states, bool one) {
  Table table({"issue", "state", "bd", "evidence", "title"});
  for (const IssueState& state : states) {
    const std::string word(state.word());
    table.add({state.issue.id, state.closed_outside ? out.tone(Tone::red, word) : word,
               out.one_line(state.issue.status), std::to_string(state.evidence.size()),
               fit(out.one_line(state.issue.title), title_columns)});
  }
  table.print(out);
  if (one && !states.empty()) {
    for (const std::string& id : states.front().evidence) out.line("  evidence " + out.one_line(id));
  }
}

Status status(Session& session, const BeadOptions& options) {
  ASSIGN_OR_RETURN(IssueStates states, read_states(session, options));
  if (!states.problems.empty()) session.exit_code = exit_refused;
  for (IssueState& state : states.shown) {
    if (!state.closed_outside) continue;
    session.exit_code = exit_refused;
    RETURN_IF_ERROR(record_closed_outside(session, state));
  }
  if (session.options.json) {
    for (const IssueState& state : states.shown) session.out().json_line(state_json(state));
    for (const std::string& problem : states.problems)
      session.out().json_line(json::Writer().begin_object().member("problem", problem).end_object().text());
    return success();
  }
  const Output& out = session.out();
  print_states(out, states.shown, options.issue.has_value());
  for (const std::string& problem : states.problems)
    out.line(fmt::format("{}  {}", out.tone(Tone::red, "problem"), out.one_line(problem)));
  for (const IssueState& state : states.shown) {
    if (!state.closed_outside) continue;
    out.line(fmt::format("{}  issue {} was closed in bd without a completed task ({}). Close it with evidence:{}",
                         out.tone(Tone::red, "violation"), state.issue.id,
                         state.recorded ? "recorded" : "not recorded: " + out.one_line(state.unrecorded),
                         out.advised(" muniment bead close " + shell_word(state.issue.id))));
  }
  if (states.unknown > 0)
    out.line(fmt::format("{} closed issues have no task in the log.{}", states.unknown,
                         out.advised(" Show them: muniment bead status --all")));
  return success();
}

}  // namespace

void add_bead_commands(CLI::App& app, Session& session) {
  CLI::App& bead = add_group(app, "bead", "Close issues of Beads (bd) only with evidence");
  add_command<BeadOptions>(session, bead, "create", "Create an issue and open its task", declare_create, create);
  add_command<BeadOptions>(session, bead, "attach", "Attach evidence to an issue", declare_attach, attach);
  add_command<BeadOptions>(session, bead, "close", "Complete the issue's task, then close the issue", declare_close,
                           close_issue);
  add_command<BeadOptions>(session, bead, "status", "Show issues and find those closed without evidence",
                           declare_status, status);
}

}  // namespace muniment::cli
