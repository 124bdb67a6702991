#include "cli/bead/issue_task.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include "base/limits.hpp"
#include "cli/exec/tree_digest.hpp"
#include "client/connect/pages.hpp"

namespace muniment::cli {
namespace {

constexpr const char* beads_agent = "beads";  // also that of BeadsClient in Python
constexpr int list_attempts = 600;
constexpr auto list_pause = std::chrono::milliseconds(50);

struct SearchedRun {
  std::string run_id;
  bool open = false;
};

// Waits until the list of runs includes the events before this call, so that a command finds the run of the command
// before. A follower that does not advance delays a command by half a minute.
Status await_run_list(Session& session) {
  std::optional<std::int64_t> size;
  for (int attempt = 0; attempt < list_attempts; ++attempt) {
    ASSIGN_OR_RETURN(const Message status, session.call("server.status", "{}"));
    if (!size) size = status.result()["log"]["size"].as_int().value_or(0);
    if (status.result()["followers"]["run"].as_int().value_or(0) >= *size) return success();
    std::this_thread::sleep_for(list_pause);
  }
  return success();
}

// Returns the newest runs and the named one. All are searched even if a run is named, because a second task of an
// issue must not replace the first with weaker requirements.
Result<std::vector<SearchedRun>> runs_to_search(Session& session, const std::string& run_id) {
  std::vector<SearchedRun> runs;
  RETURN_IF_ERROR(await_run_list(session));
  RETURN_IF_ERROR(each_item(session, "run.list", "{}", "runs", [&](const json::Value& run) -> Result<bool> {
    if (runs.size() == limits::bead_runs_max) return false;
    runs.push_back({run["run_id"].string_or(""), run["status"].string_or("") == "open"});
    return true;
  }));
  if (run_id.empty() || std::ranges::find(runs, run_id, &SearchedRun::run_id) != runs.end()) return runs;
  ASSIGN_OR_RETURN(const Message answer,
                   session.call("run.get", fmt::format("{{\"run_id\":{}}}", json::quote(run_id))));
  runs.push_back({run_id, answer.result()["run"]["status"].string_or("") == "open"});
  return runs;
}

Result<std::string> run_for_issues(Session& session) {
  ASSIGN_OR_RETURN(const Message found,
                   session.call("run.list", fmt::format(R"({{"status":"open","agent":"{}","limit":1}})", beads_agent)));
  for (const json::Value run : found.result()["runs"]) return run["run_id"].string_or("");
  ASSIGN_OR_RETURN(
      const Message started,
      session.call("run.start", fmt::format(R"({{"agent":{{"name":"{}"}},"goal":"Issues of Beads"}})", beads_agent)));
  return started.result()["run_id"].string_or("");
}

}  // namespace

Result<std::map<std::string, IssueTask>> find_issue_tasks(Session& session, const std::string& run_id,
                                                          const std::vector<BdIssue>& issues) {
  std::map<std::string, std::string> titles;
  for (const BdIssue& issue : issues) titles.emplace(issue.id, issue.title);
  const std::string own = fmt::format("uid:{}", ::geteuid());
  ASSIGN_OR_RETURN(const std::vector<SearchedRun> runs, runs_to_search(session, run_id));
  std::map<std::string, IssueTask> tasks;
  for (const SearchedRun& run : runs) {
    json::Writer params;
    params.begin_object().member("run_id", run.run_id);
    if (issues.size() == 1) params.member("task_id", issues.front().id);
    params.end_object();
    RETURN_IF_ERROR(
        each_item(session, "task.list", params.text(), "tasks", [&](const json::Value& task) -> Result<bool> {
          const auto title = titles.find(task["task_id"].string_or(""));
          if (title == titles.end()) return true;
          if (task["actor"].string_or("") != own && task["content"].string_or("") != title->second) return true;
          IssueTask found{.run_id = run.run_id,
                          .seq = task["seq"].as_int().value_or(-1),
                          .completed = task["status"].string_or("") == "completed",
                          .requires_evidence = task["requires_evidence"].as_bool().value_or(true),
                          .run_open = run.open,
                          .verdict = task["verdict"].string_or(""),
                          .evidence = {}};
          for (const json::Value id : task["evidence_ids"]) found.evidence.push_back(id.string_or(""));
          const auto [known, first] = tasks.try_emplace(title->first, found);
          if (!first && found.seq < known->second.seq) known->second = std::move(found);
          return true;
        }));
  }
  return tasks;
}

Result<IssueTask> open_issue_task(Session& session, const std::string& run_id, const BdIssue& issue,
                                  const IssueDemand& demand) {
  ASSIGN_OR_RETURN(const auto tasks, find_issue_tasks(session, run_id, {issue}));
  if (const auto known = tasks.find(issue.id); known != tasks.end()) return known->second;
  std::string place = run_id;
  if (place.empty()) {
    ASSIGN_OR_RETURN(place, run_for_issues(session));
  }
  json::Writer params;
  params.begin_object().member("run_id", place).member("task_id", issue.id).member("content", issue.title);
  if (!demand.evidence) params.member("requires_evidence", false);
  if (!demand.type.empty()) params.member("required_type", demand.type);
  write_working_tree(params);
  params.end_object();
  RETURN_IF_ERROR(session.call("task.open", params.text()));
  // Another agent may have opened a task of this issue meanwhile: both find the first one.
  ASSIGN_OR_RETURN(const auto opened, find_issue_tasks(session, place, {issue}));
  if (const auto first = opened.find(issue.id); first != opened.end()) return first->second;
  return Error(Errc::conflict, fmt::format("task {} of run {} was opened and is not listed", issue.id, place));
}

Result<std::map<std::string, std::vector<std::string>>> attached_evidence(Session& session, const std::string& run_id) {
  std::map<std::string, std::vector<std::string>> attached;
  const std::string params =
      fmt::format(R"({{"run_id":{},"types":["{}"]}})", json::quote(run_id), evidence_attached_event);
  RETURN_IF_ERROR(each_item(session, "event.list", params, "events", [&](const json::Value& event) -> Result<bool> {
    const json::Value body = event["body"];
    std::vector<std::string>& ids = attached[body["task_id"].string_or("")];
    std::string id = body["evidence_id"].string_or("");
    if (!id.empty() && std::ranges::find(ids, id) == ids.end()) ids.push_back(std::move(id));
    return true;
  }));
  return attached;
}

Result<std::string> issue_metadata(Session& session, const std::string& run_id,
                                   const std::vector<std::string>& evidence) {
  json::Writer metadata;
  metadata.begin_object().key(bead_metadata_key).begin_object().member("run_id", run_id);
  metadata.key("evidence").begin_array();
  for (const std::string& id : evidence) {
    ASSIGN_OR_RETURN(const Message answer,
                     session.call("evidence.check", fmt::format("{{\"evidence_id\":{}}}", json::quote(id))));
    metadata.begin_object().member("id", id).member("hash", answer.result()["hash"].string_or("")).end_object();
  }
  return std::move(metadata.end_array().end_object().end_object()).text();
}

}  // namespace muniment::cli
