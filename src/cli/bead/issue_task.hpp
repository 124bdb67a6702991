// Finds and opens the tasks of issues, and reads the evidence that is attached to them. The task of an issue has the id
// of the issue. If several runs have such a task, the one that was opened first counts. A task of another user counts
// only if its text is the title of the issue.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/bead/bd_issue.hpp"
#include "client/connect/session.hpp"

namespace muniment::cli {

inline constexpr std::string_view evidence_attached_event = "x.muniment.evidence_attached";
inline constexpr std::string_view issue_closed_event = "x.muniment.issue_closed";

struct IssueTask {
  std::string run_id;
  std::int64_t seq = -1;  // position of task.opened
  bool completed = false;
  bool requires_evidence = true;
  bool run_open = false;
  std::string verdict;
  std::vector<std::string> evidence;  // with which it was completed
};

// Requirements of a new task.
struct IssueDemand {
  bool evidence = true;
  std::string type;  // required type of evidence; empty: any
};

// Returns the task of the issue. Opens it from the issue's title if there is none: in the run, if one is named,
// otherwise in the newest open run of the agent "beads", otherwise in a new one.
Result<IssueTask> open_issue_task(Session& session, const std::string& run_id, const BdIssue& issue,
                                  const IssueDemand& demand = {});

// Returns the tasks of the issues in the newest runs and in `run_id`, by id. An empty `run_id` names no run.
Result<std::map<std::string, IssueTask>> find_issue_tasks(Session& session, const std::string& run_id,
                                                          const std::vector<BdIssue>& issues);

// Evidence ids by issue, each in the order of attachment, without duplicates.
Result<std::map<std::string, std::vector<std::string>>> attached_evidence(Session& session, const std::string& run_id);

// Returns the value of the option --metadata of bd: the run, and the id and hash of each piece of evidence.
Result<std::string> issue_metadata(Session& session, const std::string& run_id,
                                   const std::vector<std::string>& evidence);

}  // namespace muniment::cli
