// The criteria of design review, todos and issues: a task completes only with evidence.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "cli/meta/criteria.hpp"

namespace muniment::cli {
namespace {

// The Python class BeadsClient records an attachment as this event.
constexpr std::string_view attached_event = "x.muniment.evidence_attached";

struct Completion {
  bool completed = false;
  std::string reason;
  std::vector<std::string> codes;  // of the blocking findings
};

// A task of the validation's run.
class TaskProbe {
 public:
  TaskProbe(MetaRun& run, std::string content, std::string task_id = make_uuid_v7(Clock().now()).text())
      : run_(run), content_(std::move(content)), task_id_(std::move(task_id)) {}

  const std::string& task_id() const { return task_id_; }
  const std::string& content() const { return content_; }

  Status open(std::string_view required_type = {}) const {
    json::Writer params;
    params.begin_object().member("run_id", run_.run_id).member("task_id", task_id_).member("content", content_);
    if (!required_type.empty()) params.member("required_type", required_type);
    params.end_object();
    ASSIGN_OR_RETURN(const Message answer, run_.session.call("task.open", params.text()));
    return success();
  }

  Result<std::string> record(std::string_view type, const std::string& text) const {
    json::Writer params;
    params.begin_object().member("run_id", run_.run_id).member("task_id", task_id_).member("type", type);
    params.key("content").begin_object().member("text", text).end_object().end_object();
    ASSIGN_OR_RETURN(const Message answer, run_.session.call("evidence.record", params.text()));
    return answer.result()["evidence_id"].string_or("");
  }

  // Expects that the completion is refused with a finding of this code, and that the task remains open.
  Status refuses(std::string_view what, std::string_view code, const std::vector<std::string>& ids,
                 bool flipped = false) const {
    ASSIGN_OR_RETURN(const Completion answer, complete(ids, flipped));
    if (answer.completed) return Error(Errc::conflict, fmt::format("a completion with {} was accepted", what));
    if (std::ranges::find(answer.codes, code) == answer.codes.end())
      return Error(Errc::conflict, fmt::format("a completion with {} was refused for a different reason than {}: {}",
                                               what, code, answer.reason));
    return expect_status("open", what);
  }

  Status accepts(std::string_view what, const std::vector<std::string>& ids) const {
    ASSIGN_OR_RETURN(const Completion answer, complete(ids, false));
    if (!answer.completed)
      return Error(Errc::conflict, fmt::format("a completion with {} was refused: {}", what, answer.reason));
    return expect_status("completed", what);
  }

 private:
  Result<Completion> complete(const std::vector<std::string>& ids, bool flipped) const {
    json::Writer params;
    params.begin_object().member("run_id", run_.run_id).member("task_id", task_id_).member("evidence_ids", ids);
    if (flipped) params.member("requires_evidence", false);
    params.end_object();
    ASSIGN_OR_RETURN(const Message answer, run_.session.call("task.complete", params.text()));
    Completion completion;
    completion.completed = answer.result()["completed"].as_bool().value_or(false);
    completion.reason = answer.result()["reason"].string_or("");
    for (const json::Value finding : answer.result()["findings"]) {
      if (finding["blocks"].as_bool().value_or(false)) completion.codes.push_back(finding["code"].string_or(""));
    }
    return completion;
  }

  Status expect_status(std::string_view expected, std::string_view what) const {
    ASSIGN_OR_RETURN(const Message answer,
                     run_.session.call("task.list", fmt::format(R"({{"run_id":{},"task_id":{}}})",
                                                                json::quote(run_.run_id), json::quote(task_id_))));
    for (const json::Value task : answer.result()["tasks"]) {
      if (task["status"].string_or("") == expected) return success();
    }
    return Error(Errc::conflict, fmt::format("after a completion with {}, the task is not {}", what, expected));
  }

  MetaRun& run_;
  const std::string content_;
  const std::string task_id_;
};

Status append_event(MetaRun& run, std::string_view type, const std::string& body) {
  ASSIGN_OR_RETURN(const Message answer,
                   run.session.call("event.append", fmt::format(R"({{"run_id":{},"type":"{}","body":{}}})",
                                                                json::quote(run.run_id), type, body)));
  return success();
}

// Marks the open task as done in a plan, and expects the violation.
Status check_direct_change(MetaRun& run, const TaskProbe& task) {
  RETURN_IF_ERROR(append_event(run, "plan.updated",
                               fmt::format(R"({{"items":[{{"id":{},"text":{},"status":"completed"}}]}})",
                                           json::quote(task.task_id()), json::quote(task.content()))));
  ASSIGN_OR_RETURN(const Message page,
                   run.session.call("event.list", fmt::format(R"({{"run_id":{},"types":["violation.detected"]}})",
                                                              json::quote(run.run_id))));
  for (const json::Value event : page.result()["events"]) {
    const json::Value body = event["body"];
    if (body["kind"].string_or("") == "direct_change" && body["task_id"].string_or("") == task.task_id())
      return success();
  }
  return Error(Errc::conflict, "a plan marked an open task as done, and no violation was recorded");
}

// Returns the evidence that is attached to the issue.
Result<std::vector<std::string>> attached_evidence(MetaRun& run, const TaskProbe& issue) {
  ASSIGN_OR_RETURN(const Message page,
                   run.session.call("event.list", fmt::format(R"({{"run_id":{},"types":["{}"]}})",
                                                              json::quote(run.run_id), attached_event)));
  std::vector<std::string> ids;
  for (const json::Value event : page.result()["events"]) {
    if (event["body"]["task_id"].string_or("") == issue.task_id())
      ids.push_back(event["body"]["evidence_id"].string_or(""));
  }
  return ids;
}

bool is_in_path(const std::string& program) {
  const char* const variable = std::getenv("PATH");
  std::string_view rest = variable == nullptr ? "" : variable;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const std::string path = std::string(rest.substr(0, end)) + "/" + program;
    std::error_code failed;
    if (path.front() == '/' && std::filesystem::is_regular_file(path, failed) && ::access(path.c_str(), X_OK) == 0)
      return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

}  // namespace

Result<std::string> design_review(MetaRun& run) {
  const TaskProbe task(run, "Review the design of the export service");
  RETURN_IF_ERROR(task.open("design_review"));
  RETURN_IF_ERROR(task.refuses("no evidence", "no_evidence", {}));
  ASSIGN_OR_RETURN(const std::string placeholder,
                   task.record("design_review", "TODO: planted by doctor --self, run " + run.run_id));
  RETURN_IF_ERROR(task.refuses("a placeholder", "placeholder", {placeholder}));
  const std::string text =
      "Reviewed the design of the export service: it reads one page at a time, so that its memory is bounded; the "
      "cursor survives a restart; a page that fails is retried once and then reported with its position. Open point: "
      "the limit of a page is not configurable. Review of run " +
      run.run_id + ".";
  ASSIGN_OR_RETURN(const std::string other, task.record("observation", text));
  RETURN_IF_ERROR(task.refuses("a different type of evidence", "wrong_type", {other}));
  ASSIGN_OR_RETURN(const std::string review, task.record("design_review", text));
  RETURN_IF_ERROR(task.accepts("a design review", {review}));
  return std::string("no evidence, a placeholder and a different type were refused; a design review was accepted");
}

Result<std::string> todo_integration(MetaRun& run) {
  const TaskProbe first(run, "Document the retry of the upload client"),
      second(run, "Document the retry of the upload client for operators");
  RETURN_IF_ERROR(first.open());
  RETURN_IF_ERROR(first.refuses("no evidence", "no_evidence", {}));
  RETURN_IF_ERROR(first.refuses("a changed requirement", "requirement_changed", {}, true));
  RETURN_IF_ERROR(check_direct_change(run, first));
  ASSIGN_OR_RETURN(const std::string evidence,
                   first.record("observation",
                                "docs/upload.md, section Retry of the upload client: three attempts at 1, 2 and 4 s, "
                                "then the error over_budget. The section has 14 lines and one example, which ran "
                                "in run " +
                                    run.run_id + "."));
  RETURN_IF_ERROR(first.accepts("evidence", {evidence}));
  RETURN_IF_ERROR(second.open());
  RETURN_IF_ERROR(second.refuses("evidence of another task", "recycled", {evidence}));
  return std::string(
      "a completion without evidence, a changed requirement, a direct change and a second use were caught; "
      "evidence was accepted");
}

Result<std::string> beads_integration(MetaRun& run) {
  const TaskProbe issue(run, "Measure the start of the parser", "bd-" + make_uuid_v7(Clock().now()).text().substr(24));
  RETURN_IF_ERROR(issue.open());
  RETURN_IF_ERROR(issue.refuses("no evidence", "no_evidence", {}));
  ASSIGN_OR_RETURN(const std::string evidence,
                   issue.record("observation",
                                "The start of the parser was measured five times on an idle machine: the median is "
                                "41 ms, the slowest 44 ms. Measured in run " +
                                    run.run_id + "."));
  RETURN_IF_ERROR(append_event(
      run, attached_event,
      fmt::format(R"({{"task_id":{},"evidence_id":{}}})", json::quote(issue.task_id()), json::quote(evidence))));
  ASSIGN_OR_RETURN(const std::vector<std::string> attached, attached_evidence(run, issue));
  if (attached != std::vector<std::string>{evidence})
    return Error(Errc::conflict, "the evidence that was attached to an issue is not in the log");
  RETURN_IF_ERROR(issue.accepts("attached evidence", attached));
  return fmt::format("an issue closed only with attached evidence; the program bd is {}",
                     is_in_path("bd") ? "installed" : "not installed, issues are in the log only");
}

}  // namespace muniment::cli
