// Implements the command exec, which runs a command and records it. The start is committed before the command runs, so
// that no command runs unrecorded. After that, a failure to record does not change what the command does or its code,
// except that it does not exit with 0.
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "bridge/scrub.hpp"
#include "cli/commands.hpp"
#include "cli/exec/child_command.hpp"
#include "cli/exec/command_evidence.hpp"
#include "cli/exec/command_record.hpp"
#include "cli/exec/git.hpp"
#include "cli/exec/test_program.hpp"
#include "cli/exec/tree_digest.hpp"
#include "cli/executor/executor.hpp"

namespace muniment::cli {
namespace {

constexpr int end_attempts = 3;
constexpr std::string_view end_of_command = "the end of the command";
constexpr std::string_view evidence_of_command = "the command and its end are recorded, and the evidence";
constexpr std::string_view end_of_run = "the end of the run";

struct ExecOptions {
  std::string run;
  std::string step;
  bool scrub = false;
  EvidenceRequest evidence;
};

void declare_exec(CLI::App& command, ExecOptions& options) {
  command.add_option("--run", options.run, "Run (default: MUNIMENT_RUN, the open run with TASK, or a new run)");
  command.add_option("--step", options.step, "Step id");
  command.add_flag("--scrub", options.scrub, "Replace obvious secrets in the recorded output and report only");
  command.add_option("--evidence", options.evidence.type, "Record the command as evidence of this type (test_output)");
  command.add_option("--task", options.evidence.task, "Task of the run that the evidence supports");
  command
      .add_option("--report", options.evidence.reports,
                  "Report file, folder or pattern of the command; repeatable (default: its output)")
      ->allow_extra_args(false);
  command.add_option("--tests-changed", options.evidence.reason, "Reason for test changes within the task");
  declare_terms(command, options.evidence.terms);
  command.footer(
      "Exits with the command's code, or with 128 + the number of the signal that ended it. If that code is 0, exits\n"
      "with 1 if the evidence is refused, and with 125 if the end could not be recorded. Exits with 125 if the start\n"
      "could not be recorded; the command was then not started.");
}

// A busy daemon says when to try again; a full disk does not.
bool may_succeed_later(const Error& error) { return is_transient(error.code) || error.retry_after_ms.has_value(); }

class Recording {
 public:
  Recording(Session& session, const ExecOptions& options) : session_(session), options_(options) {}

  // Returns after the commit of command.started.
  Status begin() {
    if (session_.command.empty()) {
      return Error(Errc::invalid_argument, "the command is missing. Use: muniment exec [--run RUN] -- COMMAND …");
    }
    std::error_code failed;
    folder_ = std::filesystem::current_path(failed).string();
    RETURN_IF_ERROR(check_evidence_options());
    ASSIGN_OR_RETURN(const Config config, session_.config());
    RETURN_IF_ERROR(bridge::scrub_by(config, environ));
    RETURN_IF_ERROR(choose_run());
    if (!options_.evidence.task.empty()) {
      ASSIGN_OR_RETURN(base_, base_of_task(session_, run_id_, options_.evidence.task));
    }
    ASSIGN_OR_RETURN(const std::string params, start_params());
    started_ = Clock().now();
    ASSIGN_OR_RETURN(const Message answer, session_.call("command.start", params));
    command_id_ = answer.result()["command_id"].string_or("");
    ::setenv("MUNIMENT_RUN", run_id_.c_str(), 1);  // events recorded by the command join this run
    return success();
  }

  // Records the end of the command, its evidence, and the end of a run created for it. All three are idempotent, so
  // they are retried if the daemon was restarted. Sets `passed` to the result of the evidence.
  Status end(const CommandOutcome& outcome, bool& passed) {
    Status status = record_all(outcome, passed);
    for (int attempt = 1; attempt < end_attempts && !status && may_succeed_later(status.error()); ++attempt) {
      std::this_thread::sleep_for(std::chrono::seconds(attempt));
      session_.disconnect();
      status = record_all(outcome, passed);
    }
    return status;
  }

  // Returns the name of the part that `end` is recording; after a failure, of the missing part.
  std::string_view recording() const { return recording_; }

  // Returns whether the command counts as passed; true if no evidence is requested. A run created for the command may
  // have ended by then, since it ends with the evidence.
  Result<bool> judge() {
    if (options_.evidence.type.empty()) return true;
    EvidenceRequest request = options_.evidence;
    request.scrub = options_.scrub;
    request.started = started_;
    return record_evidence(session_, request, run_id_, options_.step, command_id_, folder_, base_);
  }

  Status end_own_run(const CommandOutcome& outcome, bool passed) {
    if (!own_run_) return success();
    const bool good = outcome.signal == 0 && outcome.exit_code == 0 && passed;
    // The idempotency key makes a retry safe after a lost reply.
    RETURN_IF_ERROR(session_.call(
        "run.end", fmt::format("{{\"run_id\":{},\"outcome\":\"{}\",\"_meta\":{{\"idempotency_key\":\"end of {}\"}}}}",
                               json::quote(run_id_), good ? "success" : "failure", command_id_)));
    return success();
  }

 private:
  Status record_all(const CommandOutcome& outcome, bool& passed) {
    recording_ = end_of_command;
    RETURN_IF_ERROR(record_end(outcome));
    recording_ = evidence_of_command;
    const Result<bool> judged = judge();
    if (!judged && is_transient(judged.error().code)) return judged.error();
    passed = judged.ok() && *judged;
    const Status ended = end_own_run(outcome, passed);
    if (!judged) return judged.error();
    recording_ = end_of_run;
    return ended;
  }

  Status check_evidence_options() const {
    const EvidenceRequest& asked = options_.evidence;
    if (asked.type.empty() && (!asked.task.empty() || !asked.reports.empty() || asked.terms.any()))
      return Error(Errc::invalid_argument,
                   "--task, --report, --expires-in and --depends-on require --evidence. Add the type: --evidence "
                   "test_output");
    json::Writer written;
    return write_terms(written.begin_object(), asked.terms);
  }

  Status choose_run() {
    ASSIGN_OR_RETURN(run_id_, session_.run_id_if_any(options_.run));
    if (run_id_.empty() && !options_.evidence.task.empty()) {
      ASSIGN_OR_RETURN(run_id_, run_of_task(session_, options_.evidence.task));
    }
    if (!run_id_.empty()) return success();
    std::vector<std::string> shown = session_.command;
    bridge::scrub_arguments(shown);
    std::string goal;
    for (const std::string& word : shown) goal += (goal.empty() ? "" : " ") + word;
    json::Writer params;
    params.begin_object().key("agent").begin_object();
    const std::string name = std::filesystem::path(session_.command.front()).filename().string();
    params.member("name", name.empty() ? "command" : preview(name, 256)).end_object();
    params.member("goal", preview(goal, 1000)).end_object();
    ASSIGN_OR_RETURN(const Message answer, session_.call("run.start", params.text()));
    run_id_ = answer.result()["run_id"].string_or("");
    own_run_ = true;
    return success();
  }

  Result<std::string> start_params() {
    json::Writer params;
    params.begin_object().member("run_id", run_id_);
    if (!options_.step.empty()) params.member("step_id", options_.step);
    std::vector<std::string> arguments = session_.command;
    const std::size_t scrubbed = bridge::scrub_arguments(arguments);
    RETURN_IF_ERROR(write_arguments({session_, run_id_, options_.step}, params, arguments));
    params.member("cwd", preview(folder_, 4096));
    write_environment(params, environ);
    const std::string digest = tree_digest(folder_);
    if (!digest.empty()) params.member("tree_digest", digest);
    if (!options_.evidence.type.empty()) write_program(params);
    params.member("scrubbed", scrubbed).end_object();
    return std::move(params).text();
  }

  void write_program(json::Writer& params) const {
    const TestProgram program = test_program(session_.command, folder_, base_);
    params.key("program").begin_object().member("path", program.path);
    if (!program.own.empty()) params.member("own", program.own);
    if (!program.left_out.empty()) params.member("left_out", program.left_out);
    params.end_object();
  }

  Status record_end(const CommandOutcome& outcome) {
    json::Writer params;
    params.begin_object().member("run_id", run_id_).member("command_id", command_id_);
    if (outcome.signal != 0) {
      params.member("signal", signal_name(outcome.signal));
    } else {
      params.member("exit_code", outcome.exit_code);
    }
    if (!outcome.not_found) params.member("duration_us", outcome.duration_us);
    scrubbed_ = 0;
    const CommandPlace place{session_, run_id_, options_.step};
    bool lost = outcome.output_lost;
    const auto keep = [&](const char* stream, const Fd& output) -> Status {
      Status kept = write_output(place, params, command_id_, stream, output, options_.scrub, scrubbed_);
      if (kept || may_succeed_later(kept.error())) return kept;
      if (kept.error().code != Errc::over_budget && kept.error().code != Errc::too_large) return kept;
      lost = true;  // the end is recorded without it
      session_.finish_quietly(std::string(stream) + " of the command", kept);
      return success();
    };
    RETURN_IF_ERROR(keep("stdout", outcome.stdout_file));
    RETURN_IF_ERROR(keep("stderr", outcome.stderr_file));
    const std::string digest = tree_digest(folder_);
    if (!digest.empty()) params.member("tree_digest", digest);
    if (options_.scrub) params.member("scrubbed", scrubbed_);
    if (lost) params.member("x_output_lost", true);
    params.end_object();
    RETURN_IF_ERROR(session_.call("command.end", params.text()));
    return success();
  }

  Session& session_;
  const ExecOptions& options_;
  std::string folder_;
  std::string run_id_;
  std::string command_id_;
  TaskBase base_;
  Time started_{};  // before the start of the command
  std::string_view recording_ = end_of_command;
  bool own_run_ = false;
  std::size_t scrubbed_ = 0;  // number of secrets replaced in the output
};

Status exec_command(Session& session, const ExecOptions& options) {
  const auto executed = run_in_executor(session, !options.evidence.type.empty());
  if (executed && *executed) {
    session.exit_code = **executed;
    return success();
  }
  session.observe();
  Recording recording(session, options);
  Status begun = executed ? recording.begin() : Status(executed.error());
  if (!begun) {
    session.finish(begun);
    session.exit_code = exit_not_recorded;
    return success();
  }
  auto outcome = run_command(session.command, session.execution.front);
  if (!outcome) {  // the machine lacks a resource; records the end that matches the recorded start
    session.finish(outcome.error());
    session.exit_code = exit_not_recorded;
    CommandOutcome unstarted;
    unstarted.not_found = true;
    unstarted.exit_code = exit_not_recorded;
    bool passed = false;
    const Status ended = recording.end(unstarted, passed);
    session.finish_quietly(recording.recording(), ended);
    return success();
  }
  bool passed = options.evidence.type.empty();
  const Status ended = recording.end(*outcome, passed);
  session.finish_quietly(recording.recording(), ended);
  session.exit_code = outcome->signal != 0 ? 128 + outcome->signal : outcome->exit_code;
  if (session.exit_code != 0) return success();
  if (!passed) session.exit_code = exit_refused;
  if (!ended && recording.recording() != evidence_of_command) session.exit_code = exit_not_recorded;
  return success();
}

}  // namespace

void add_exec_command(CLI::App& app, Session& session) {
  add_command<ExecOptions>(session, app, "exec", "Run a command and record it", declare_exec, exec_command);
}

}  // namespace muniment::cli
