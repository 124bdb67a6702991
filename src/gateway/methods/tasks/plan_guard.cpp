// Detects plans that mark an open task as done.
#include "gateway/methods/tasks/plan_guard.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "gateway/methods/tasks/task_record.hpp"
#include "gateway/services.hpp"

namespace muniment::gateway::methods {
namespace {

constexpr std::array<std::string_view, 5> finished = {"completed", "complete", "done", "finished", "closed"};
constexpr std::array<std::string_view, 5> of_the_gate = {"task.opened", "task.validated", "task.completed",
                                                         "evidence.recorded", "violation.detected"};
constexpr std::size_t open_tasks_max = 1000;  // per run, the oldest

// Returns the ids of the finished items.
std::vector<std::string> finished_items(const AdmittedAppend& admitted, std::size_t at_most) {
  std::vector<std::string> ids;
  for (const AdmittedEvent& event : admitted.events) {
    if (event.event.type != "plan.updated") continue;
    for (const json::Value item : event.body["items"]) {
      if (ids.size() == at_most) return ids;
      if (std::ranges::find(finished, item["status"].string_or("")) == finished.end()) continue;
      ids.push_back(item["id"].string_or(""));
    }
  }
  return ids;
}

}  // namespace

bool finishes_plan_items(const AdmittedAppend& admitted) { return !finished_items(admitted, 1).empty(); }

Result<std::vector<events::NewEvent>> plan_violations(Call& call, const store::Run& run,
                                                      const AdmittedAppend& admitted) {
  std::vector<events::NewEvent> violations;
  const std::vector<std::string> ids = finished_items(admitted, SIZE_MAX);
  if (ids.empty()) return violations;
  ASSIGN_OR_RETURN(const auto open, call.reader->tasks(run.run_id, false, -1, open_tasks_max));
  const std::set<std::string_view> finished_ids(ids.begin(), ids.end());
  for (const store::TaskPlace& task : open) {
    const std::string& id = task.task_id;
    if (!finished_ids.contains(id)) continue;
    violations.push_back(violation_event(
        call, run, {"direct_change", fmt::format("plan.updated marks task {} as done, but it is open", id), id, ""}));
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
