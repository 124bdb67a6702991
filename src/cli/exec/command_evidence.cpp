#include "cli/exec/command_evidence.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "base/text.hpp"
#include "bridge/scrub.hpp"
#include "cli/exec/report_file.hpp"
#include "cli/exec/test_changes.hpp"
#include "client/connect/pages.hpp"
#include "client/connect/upload.hpp"
#include "client/hints.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t open_runs_max = 1000;  // runs searched for a task

Result<bool> has_open_task(Session& session, const std::string& run_id, const std::string& task_id) {
  json::Writer params;
  params.begin_object().member("run_id", run_id).member("task_id", task_id).member("status", "open").end_object();
  ASSIGN_OR_RETURN(const Message answer, session.call("task.list", params.text()));
  return answer.result()["tasks"].size() > 0;
}

// Stores the report files in the run. Errors: those of open_reports.
Status add_reports(Session& session, const EvidenceRequest& request, const std::string& run_id,
                   const std::string& step_id, json::Writer& params) {
  ASSIGN_OR_RETURN(const std::vector<ReportFile> reports,
                   open_reports(request.reports, request.started, request.scrub));
  ASSIGN_OR_RETURN(Client* const client, session.client());
  params.key("reports").begin_array();
  for (const ReportFile& report : reports) {
    const Upload upload{run_id, step_id, mime_type_of(report.path), R"({"what":"report"})"};
    ASSIGN_OR_RETURN(const Message answer, put_open_file(*client, upload, report.file.get()));
    params.begin_object().member("artifact_id", answer.result()["artifact_id"].string_or(""));
    params.member("modified_at", format_time(report.changed_at)).end_object();
  }
  params.end_array();
  return success();
}

}  // namespace

Result<std::string> run_of_task(Session& session, const std::string& task_id) {
  std::vector<std::string> runs;
  std::size_t asked = 0;
  RETURN_IF_ERROR(
      each_item(session, "run.list", R"({"status":"open"})", "runs", [&](const json::Value& run) -> Result<bool> {
        if (++asked > open_runs_max)
          return Error(Errc::conflict,
                       fmt::format("more than {} runs are open. Name the run of the task: --run RUN", open_runs_max));
        std::string id = run["run_id"].string_or("");
        ASSIGN_OR_RETURN(const bool has, has_open_task(session, id, task_id));
        if (has) runs.push_back(std::move(id));
        return true;
      }));
  if (runs.size() == 1) return std::move(runs.front());
  if (runs.empty())
    return Error(
        Errc::not_found,
        fmt::format(
            "no open run has an open task {0}. Name the run of a completed task (--run RUN), or open a task: muniment "
            "task open --run RUN --task {0} CONTENT",
            shell_word(task_id)));
  std::string all;
  for (const std::string& run : runs) all += (all.empty() ? "" : ", ") + run;
  return Error(Errc::conflict,
               fmt::format("{} open runs have an open task {}: {}. Name one: --run RUN", runs.size(), task_id, all));
}

Result<TaskBase> base_of_task(Session& session, const std::string& run_id, const std::string& task_id) {
  ASSIGN_OR_RETURN(const Message answer,
                   session.call("task.list", fmt::format("{{\"run_id\":{},\"task_id\":{}}}", json::quote(run_id),
                                                         json::quote(task_id))));
  for (const json::Value task : answer.result()["tasks"]) {
    TaskBase base{.opened_at = parse_time(task["opened_at"].string_or("")),
                  .tree_digest = std::string(task["tree_digest"].string_or(""))};
    if (std::string commit = commit_of(base.tree_digest); !commit.empty()) base.commit = std::move(commit);
    return base;
  }
  return Error(Errc::not_found,
               fmt::format("no task {} in run {}. Open it first: muniment task open --run {} --task {} CONTENT",
                           task_id, run_id, shell_word(run_id), shell_word(task_id)));
}

Result<bool> record_evidence(Session& session, const EvidenceRequest& request, const std::string& run_id,
                             const std::string& step_id, const std::string& command_id, const std::string& folder,
                             const TaskBase& base) {
  json::Writer params;
  params.begin_object().member("run_id", run_id).member("type", request.type).member("command_id", command_id);
  if (!step_id.empty()) params.member("step_id", step_id);
  if (!request.task.empty()) params.member("task_id", request.task);
  if (!request.reports.empty()) RETURN_IF_ERROR(add_reports(session, request, run_id, step_id, params));
  if (base.opened_at) {
    params.key("base").begin_object().member("commit", base.commit);
    params.member("opened_at", format_time(*base.opened_at)).end_object();
  }
  TestChanges changes = test_changes(folder, base);
  if (!changes.paths.empty()) params.member("tests_changed", changes.paths);
  if (request.scrub) bridge::scrub_text(changes.lines);
  if (!changes.lines.empty()) params.member("tests_diff", changes.lines);
  if (!changes.skips.empty()) params.member("skips_added", changes.skips);
  if (!request.reason.empty()) params.member("tests_changed_reason", request.reason);
  RETURN_IF_ERROR(write_terms(params, request.terms));
  // The idempotency key makes a retry after a lost reply safe.
  params.key("_meta").begin_object().member("idempotency_key", "evidence of " + command_id).end_object().end_object();
  ASSIGN_OR_RETURN(const Message answer, session.call("evidence.record", params.text()));
  const bool passed = answer.result()["passed"].as_bool().value_or(false);
  fmt::print(stderr, "muniment: evidence {} ({}): {}: {}\n", answer.result()["evidence_id"].string_or(""), request.type,
             passed ? "passed" : "refused",
             escape_for_terminal(session.advised(with_commands(answer.result()["reason"].string_or("")))));
  return passed;
}

}  // namespace muniment::cli
