// Detects plans that mark an open task as done, and issues that were closed while their task is open.
#include "gateway/methods/tasks/plan_guard.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "gateway/methods/tasks/task_record.hpp"
#include "gateway/services.hpp"

namespace muniment::gateway::methods {
namespace {

// Statuses of unfinished items, as agents write them, in order. Every other status counts as finished, so that an
// unknown word cannot bypass the gate.
constexpr std::array<std::string_view, 34> unfinished = {
    "abandoned", "active",  "backlog",     "blocked",   "canceled",   "cancelled", "deferred",    "doing",   "draft",
    "failed",    "failing", "in_progress", "in_review", "incomplete", "new",       "not_started", "on_hold", "ongoing",
    "open",      "paused",  "pending",     "planned",   "queued",     "ready",     "reopened",    "running", "skipped",
    "started",   "stopped", "to_do",       "todo",      "unknown",    "waiting",   "working"};
static_assert(std::ranges::is_sorted(unfinished));
// Sent by muniment bead status, with the member task_id.
constexpr std::string_view issue_closed_event = "x.muniment.issue_closed";
constexpr std::array<std::string_view, 5> of_the_gate = {"task.opened", "task.validated", "task.completed",
                                                         "evidence.recorded", "violation.detected"};

// Returns the status without white space around it, in lower case, with words joined by "_": "In Progress" as
// in_progress.
std::string folded(std::string_view status) {
  constexpr std::string_view blanks = " \t\r\n\f\v";
  const std::size_t begin = std::min(status.find_first_not_of(blanks), status.size());
  std::string word(status.substr(begin, status.find_last_not_of(blanks) + 1 - begin));
  for (char& c : word) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == ' ' || c == '-') c = '_';
  }
  return word;
}

bool is_finished(std::string_view status) { return !std::ranges::binary_search(unfinished, folded(status)); }

// An event that says that a task is done.
struct Finished {
  std::string task_id;
  bool issue = false;  // the issue of the task was closed (x.muniment.issue_closed)
};

std::vector<Finished> finished_items(const AdmittedAppend& admitted, std::size_t at_most) {
  std::vector<Finished> found;
  for (const AdmittedEvent& event : admitted.events) {
    if (found.size() >= at_most) return found;
    if (event.event.type == issue_closed_event) found.push_back({event.body["task_id"].string_or(""), true});
    if (event.event.type != "plan.updated") continue;
    for (const json::Value item : event.body["items"]) {
      if (found.size() == at_most) return found;
      if (!is_finished(item["status"].string_or(""))) continue;
      found.push_back({item["id"].string_or(""), false});
    }
  }
  return found;
}

}  // namespace

bool finishes_plan_items(const AdmittedAppend& admitted) { return !finished_items(admitted, 1).empty(); }

Result<std::vector<events::NewEvent>> plan_violations(Call& call, const store::Run& run,
                                                      const AdmittedAppend& admitted) {
  std::vector<events::NewEvent> violations;
  const std::vector<Finished> finished = finished_items(admitted, SIZE_MAX);
  if (finished.empty()) return violations;
  std::vector<std::string> ids;
  for (const Finished& item : finished) ids.push_back(item.task_id);
  ASSIGN_OR_RETURN(const auto open, call.reader->open_tasks(run.run_id, ids));
  for (const store::TaskPlace& task : open) {
    const std::string& id = task.task_id;
    const bool issue = std::ranges::find_if(finished, [&](const Finished& item) {
                         return item.issue && item.task_id == id;
                       }) != finished.end();
    const std::string detail = issue ? fmt::format("issue {} was closed in the issue tracker, but its task is open", id)
                                     : fmt::format("plan.updated marks task {} as done, but it is open", id);
    violations.push_back(violation_event(call, run, {issue ? "closed_outside" : "direct_change", detail, id, ""}));
  }
  return violations;
}

void note_direct_change(Call& call, const std::shared_ptr<store::Run>& run) {
  const auto check = [&](const json::Value& item) {
    const std::string type = item["type"].string_or("");
    if (std::ranges::find(of_the_gate, type) == of_the_gate.end()) return false;
    log_violation(call, run, {"direct_change", "event.append of " + type, item["body"]["task_id"].string_or(""), ""});
    return true;
  };
  if (check(call.params)) return;
  for (const json::Value item : call.params["events"]) {
    if (check(item)) return;
  }
}

}  // namespace muniment::gateway::methods
