#include "cli/workflow/recorded_step.hpp"

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "bridge/scrub.hpp"
#include "cli/exec/child_command.hpp"
#include "cli/exec/command_record.hpp"
#include "cli/workflow/workspace.hpp"

namespace muniment::cli {
namespace {

constexpr int not_started = 127;

Result<std::string> start_command(const StepPlace& place, const std::string& step, const StepPlan& plan) {
  json::Writer params;
  params.begin_object().member("run_id", place.run_id).member("step_id", step);
  std::vector<std::string> arguments = plan.argv;
  const std::size_t scrubbed = bridge::scrub_arguments(arguments);
  RETURN_IF_ERROR(write_arguments({place.session, place.run_id, step}, params, arguments));
  params.member("cwd", preview(plan.folder, 4096));
  std::vector<const char*> environment;
  for (const std::string& variable : plan.environment) environment.push_back(variable.c_str());
  environment.push_back(nullptr);
  write_environment(params, environment.data());
  params.member("scrubbed", scrubbed).end_object();
  ASSIGN_OR_RETURN(const Message answer, place.session.call("command.start", params.text()));
  return answer.result()["command_id"].string_or("");
}

// The events of a step are appended together; the ids make a repetition harmless.
Status record_refusals(const StepPlace& place, const RecordedStep& step) {
  if (step.outcome.refusals.empty()) return success();
  json::Writer params;
  params.begin_object().member("run_id", place.run_id).key("events").begin_array();
  for (const Refusal& refusal : step.outcome.refusals) {
    params.begin_object().member("type", "sandbox.refused").member("step_id", step.name).key("body").begin_object();
    params.member("operation", refusal.operation).member("source", step.outcome.isolation.source);
    if (!refusal.path.empty()) params.member("path", preview(refusal.path, 4096));
    if (!refusal.program.empty()) params.member("program", preview(refusal.program, 4096));
    if (refusal.count > 1) params.member("count", refusal.count);
    params.member("call_id", step.command_id).end_object().end_object();
  }
  params.end_array().end_object();
  RETURN_IF_ERROR(place.session.call("event.append", params.text()));
  return success();
}

void write_isolation(json::Writer& params, const StepPlace& place, const StepOutcome& outcome) {
  params.key("isolation").begin_object().member("level", outcome.isolation.level).member("demanded", place.demanded);
  params.member("missing", outcome.isolation.missing).member("refused", outcome.refused);
  params.member("omitted", outcome.omitted).member("landlock", outcome.isolation.landlock);
  if (!outcome.isolation.source.empty()) params.member("source", outcome.isolation.source);
  if (outcome.examined) params.member("examined", *outcome.examined);
  params.end_object();
}

Status end_command(const StepPlace& place, RecordedStep& step, bool confined) {
  StepOutcome& outcome = step.outcome;
  RETURN_IF_ERROR(record_refusals(place, step));
  json::Writer params;
  params.begin_object().member("run_id", place.run_id).member("command_id", step.command_id);
  if (outcome.signal != 0) {
    params.member("signal", signal_name(outcome.signal));
  } else {
    params.member("exit_code", outcome.exit_code);
  }
  if (outcome.duration_us > 0) params.member("duration_us", outcome.duration_us);
  if (confined) write_isolation(params, place, outcome);
  if (!outcome.ended_by.empty()) params.member("x_ended_by", outcome.ended_by);
  std::size_t scrubbed = 0;
  const CommandPlace command{place.session, place.run_id, step.name};
  RETURN_IF_ERROR(write_output(command, params, step.command_id, "stdout", outcome.stdout_file, false, scrubbed,
                               &step.stdout_artifact));
  RETURN_IF_ERROR(write_output(command, params, step.command_id, "stderr", outcome.stderr_file, false, scrubbed));
  params.end_object();
  RETURN_IF_ERROR(place.session.call("command.end", params.text()));
  return success();
}

}  // namespace

std::string RecordedStep::ending() const {
  if (outcome.ended_by == "interrupted") return outcome.ended_by;
  if (outcome.ended_by == "disk_full") return "its output could not be stored: the disk is full";
  if (outcome.ended_by == "files") return "its folder has " + too_many_files(limits::workflow_implementation_files_max);
  if (!outcome.ended_by.empty()) return "exceeded its limit " + outcome.ended_by;
  return outcome.signal != 0 ? signal_name(outcome.signal) : fmt::format("exit {}", outcome.exit_code);
}

Result<RecordedStep> run_recorded(const StepPlace& place, const std::string& name, const StepPlan& plan,
                                  StopSignals& stop) {
  RecordedStep step;
  step.name = name;
  ASSIGN_OR_RETURN(step.command_id, start_command(place, name, plan));
  auto outcome = run_step(plan, stop);
  if (outcome) {
    step.outcome = std::move(*outcome);
  } else {
    step.outcome.exit_code = not_started;
  }
  RETURN_IF_ERROR(end_command(place, step, plan.confined));
  if (!outcome) return std::move(outcome).error().within(name);
  return step;
}

}  // namespace muniment::cli
