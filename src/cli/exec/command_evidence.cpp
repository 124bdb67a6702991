#include "cli/exec/command_evidence.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "base/clock.hpp"
#include "cli/connect/upload.hpp"
#include "cli/exec/git.hpp"
#include "cli/exec/report_file.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t changed_tests_max = 100;

// Puts the report file into the run. Errors: those of open_report.
Status add_report(Session& session, const EvidenceRequest& request, const std::string& run_id,
                  const std::string& step_id, json::Writer& params) {
  ASSIGN_OR_RETURN(const ReportFile report, open_report(request.report, request.scrub));
  ASSIGN_OR_RETURN(Client* const client, session.client());
  const Upload upload{run_id, step_id, mime_type_of(request.report), R"({"what":"report"})"};
  ASSIGN_OR_RETURN(const Message answer, put_open_file(*client, upload, report.file.get()));
  params.key("report").begin_object().member("artifact_id", answer.result()["artifact_id"].string_or(""));
  params.member("modified_at", format_time(report.modified_at)).end_object();
  return success();
}

}  // namespace

Result<std::string> tree_of_task(Session& session, const std::string& run_id, const std::string& task_id) {
  ASSIGN_OR_RETURN(const Message answer,
                   session.call("task.list", fmt::format("{{\"run_id\":{},\"task_id\":{}}}", json::quote(run_id),
                                                         json::quote(task_id))));
  for (const json::Value task : answer.result()["tasks"]) return task["tree_digest"].string_or("");
  return Error(Errc::not_found,
               fmt::format("no task {} in run {}. Open it first: muniment task open", task_id, run_id));
}

Result<bool> record_evidence(Session& session, const EvidenceRequest& request, const std::string& run_id,
                             const std::string& step_id, const std::string& command_id, const std::string& folder,
                             const std::string& task_tree) {
  json::Writer params;
  params.begin_object().member("run_id", run_id).member("type", request.type).member("command_id", command_id);
  if (!step_id.empty()) params.member("step_id", step_id);
  if (!request.task.empty()) params.member("task_id", request.task);
  if (!request.report.empty()) RETURN_IF_ERROR(add_report(session, request, run_id, step_id, params));
  const std::string base = commit_of(task_tree);
  const std::vector<std::string> changed = changed_tests(folder, base.empty() ? "HEAD" : base, changed_tests_max);
  if (!changed.empty()) params.member("tests_changed", changed);
  if (!request.reason.empty()) params.member("tests_changed_reason", request.reason);
  // Known by its key: the reply may be lost, and the request sent again.
  params.key("_meta").begin_object().member("idempotency_key", "evidence of " + command_id).end_object().end_object();
  ASSIGN_OR_RETURN(const Message answer, session.call("evidence.record", params.text()));
  const bool passed = answer.result()["passed"].as_bool().value_or(false);
  fmt::print(stderr, "muniment: evidence {} ({}): {}: {}\n", answer.result()["evidence_id"].string_or(""), request.type,
             passed ? "passed" : "refused", answer.result()["reason"].string_or(""));
  return passed;
}

}  // namespace muniment::cli
