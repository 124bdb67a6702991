// Reads tasks from the log: the tables name the events that opened and completed a task; the events hold its content.
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
  std::int64_t seq = -1;  // seq of task.opened; -1: erased
  Time opened_at{};
  std::string actor;
  bool erased = false;  // the text was erased
  std::string content, type, required_type, tree_digest;
  std::string workflow;  // digest of the workflow whose comparison completes it; empty: any evidence
  bool requires_evidence = true;
  std::optional<std::int64_t> completed_seq;  // nullopt: the task is open
  Time completed_at{};
  std::string verdict;
  std::vector<std::string> evidence_ids;
};

// Returns nullopt if the run has no such task.
Result<std::optional<TaskRecord>> find_task(store::Reader& reader, std::string_view run_id, std::string_view task_id);
Result<std::vector<TaskRecord>> list_tasks(store::Reader& reader, std::string_view run_id,
                                           std::optional<bool> completed, std::int64_t after_seq, std::size_t limit);

// The working tree of a request about a task.
struct ClaimedTree {
  std::string digest;     // empty: none
  bool observed = false;  // the daemon's executor computed it; otherwise the client states it
};
// Reads the parameters `folder` and `tree_digest`. Needs a worker. Errors: invalid_argument, deadline_exceeded.
Result<ClaimedTree> claimed_tree(const Call& call);

// The content of a violation.detected event that the caller caused.
struct Violation {
  std::string kind;    // requirement_changed, evidence_edited, direct_change …
  std::string detail;  // text of the finding
  std::string task_id;
  std::string evidence_id;
};
events::NewEvent violation_event(Call& call, const store::Run& run, const Violation& violation);
// Queues the event without waiting, for a request that is refused with an error. A run that is not open records
// nothing.
void log_violation(Call& call, const std::shared_ptr<store::Run>& run, const Violation& violation);

}  // namespace muniment::gateway::methods
