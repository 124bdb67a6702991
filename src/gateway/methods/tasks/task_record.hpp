// Tasks as the log has them: the tables say which events opened and completed a task, the events say the rest.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/call.hpp"
#include "store/tables/runs.hpp"

namespace muniment::gateway::methods {

struct TaskRecord {
  std::string task_id;
  std::int64_t seq = -1;  // of task.opened; -1: erased
  Time opened_at{};
  std::string actor;
  bool erased = false;  // its text is gone
  std::string content, type, required_type, tree_digest;
  bool requires_evidence = true;
  std::optional<std::int64_t> completed_seq;  // nullopt: it is open
  Time completed_at{};
  std::string verdict;
  std::vector<std::string> evidence_ids;
};

// nullopt: the run has no such task.
Result<std::optional<TaskRecord>> find_task(store::Reader& reader, std::string_view run_id, std::string_view task_id);
Result<std::vector<TaskRecord>> list_tasks(store::Reader& reader, std::string_view run_id,
                                           std::optional<bool> completed, std::int64_t after_seq, std::size_t limit);

// A violation.detected event of the caller's doing.
struct Violation {
  std::string kind;    // requirement_changed, evidence_edited, direct_change …
  std::string detail;  // what was seen
  std::string task_id;
  std::string evidence_id;
};
events::NewEvent violation_event(Call& call, const store::Run& run, const Violation& violation);
// Appended by the way, for a request that is refused with an error. A run that is not open takes none.
void log_violation(Call& call, const std::shared_ptr<store::Run>& run, const Violation& violation);

}  // namespace muniment::gateway::methods
