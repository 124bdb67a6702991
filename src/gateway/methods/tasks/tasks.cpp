// task.open and task.list. A task is opened once; its text and its requirements never change. Its status changes only
// through task.complete (completion.cpp).
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "gateway/access.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/methods/tasks/task_record.hpp"
#include "gateway/services.hpp"

namespace muniment::gateway::methods {
namespace {

TaskRecord task_of(const json::Value& params) {
  TaskRecord task;
  task.content = params["content"].string_or("");
  task.type = params["type"].string_or("");
  task.required_type = params["required_type"].string_or("");
  task.workflow = params["workflow"].string_or("");
  task.requires_evidence = params["requires_evidence"].as_bool().value_or(true);
  return task;
}

std::string opened_json(const TaskRecord& task, const std::string& run_id, std::int64_t seq, bool duplicate) {
  json::Writer out;
  out.begin_object().member("task_id", task.task_id).member("run_id", run_id);
  return std::move(out.member("seq", seq).member("duplicate", duplicate).end_object()).text();
}

std::string opened_body(const TaskRecord& task) {
  json::Writer body;
  body.begin_object().member("task_id", task.task_id).member("content", task.content);
  body.member("requires_evidence", task.requires_evidence);
  if (!task.required_type.empty()) body.member("required_type", task.required_type);
  if (!task.type.empty()) body.member("type", task.type);
  if (!task.tree_digest.empty()) body.member("tree_digest", task.tree_digest);
  if (!task.workflow.empty()) body.member("workflow", task.workflow);
  return std::move(body.end_object()).text();
}

// A repeated open must have the same content; otherwise it would change the task without the gate.
Result<Answer> open_again(Call& call, const std::shared_ptr<store::Run>& run, const TaskRecord& known,
                          const TaskRecord& said) {
  const bool same = known.content == said.content && known.type == said.type &&
                    known.required_type == said.required_type && known.workflow == said.workflow &&
                    known.requires_evidence == said.requires_evidence;
  if (same) return Answer(Reply{opened_json(known, run->run_id, known.seq, true), {}});
  const std::string detail =
      fmt::format("task {} was opened at seq {} with other parameters", known.task_id, known.seq);
  log_violation(call, run, {"requirement_changed", detail, known.task_id, ""});
  Error error(Errc::conflict, detail + ". A task cannot be changed: open a new one with a different task_id.");
  error.run_id = run->run_id;
  return error;
}

}  // namespace

Result<Answer> task_open(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  ASSIGN_OR_RETURN(const auto run, find_run(call, call.params["run_id"].string_or("")));
  TaskRecord task = task_of(call.params);
  if (!task.workflow.empty() && !task.requires_evidence)
    return Error(Errc::invalid_argument, "workflow: a task with a workflow requires evidence. Omit requires_evidence.");
  const auto given = call.params["task_id"].as_string();
  const bool repeatable = !call.idempotency_key.empty();
  task.task_id = given        ? *given
                 : repeatable ? idempotent_id_in(*run, call.caller, "task.open", call.idempotency_key).text()
                              : make_uuid_v7(call.services.clock.now()).text();
  ASSIGN_OR_RETURN(const auto known, find_task(*call.reader, run->run_id, task.task_id));
  if (known) return open_again(call, run, *known, task);
  RETURN_IF_ERROR(check_open(*run));
  ASSIGN_OR_RETURN(ClaimedTree tree, claimed_tree(call));
  task.tree_digest = std::move(tree.digest);
  std::string body = opened_body(task);
  RETURN_IF_ERROR(events::check_body_size(body.size(), "the task", "Shorten content."));
  PendingAppend append;
  append.request.actor = call.caller.actor;
  append.request.events.push_back(
      {run, make_event(call, *run, "task.opened", std::move(body), call.params["step_id"].string_or(""))});
  append.request.rows.push_back({0, store::TaskChangeRow{run->run_id, task.task_id, "opened"}});
  append.finish = [run, task](Services&, const std::vector<events::Receipt>& receipts) -> Result<Reply> {
    return Reply{opened_json(task, run->run_id, receipts.back().seq, false), {}};
  };
  return Answer(std::move(append));
}

namespace {

void write_task(json::Writer& out, const TaskRecord& task) {
  out.begin_object().member("task_id", task.task_id);
  if (!task.erased) out.member("content", task.content);
  if (!task.type.empty()) out.member("type", task.type);
  out.member("requires_evidence", task.requires_evidence);
  if (!task.required_type.empty()) out.member("required_type", task.required_type);
  if (!task.tree_digest.empty()) out.member("tree_digest", task.tree_digest);
  if (!task.workflow.empty()) out.member("workflow", task.workflow);
  out.member("status", task.completed_seq ? "completed" : "open").member("actor", task.actor);
  out.member("opened_at", format_time(task.opened_at));
  if (task.completed_seq) {
    out.member("completed_at", format_time(task.completed_at));
    if (!task.verdict.empty()) out.member("verdict", task.verdict).member("evidence_ids", task.evidence_ids);
  }
  out.member("seq", task.seq).end_object();
}

}  // namespace

Result<Answer> task_list(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  ASSIGN_OR_RETURN(const ReadRun found, find_run_to_read(call, call.params["run_id"].string_or("")));
  std::int64_t after = -1;
  if (const auto cursor = call.params["cursor"].as_string()) {
    const auto end = std::from_chars(cursor->data(), cursor->data() + cursor->size(), after);
    if (end.ec != std::errc() || end.ptr != cursor->data() + cursor->size())
      return Error(Errc::invalid_argument, "cursor: expected the cursor of an earlier reply of task.list.");
  }
  const auto wanted = call.params["task_id"].as_string();
  const auto limit = static_cast<std::size_t>(call.params["limit"].as_int().value_or(limits::page_items_default));
  const auto status = call.params["status"].as_string();
  const auto completed = status ? std::optional(*status == "completed") : std::nullopt;
  std::vector<TaskRecord> tasks;
  if (wanted) {
    ASSIGN_OR_RETURN(auto one, find_task(*found.reader, found.run->run_id, *wanted));
    if (one && one->seq > after && (!completed || *completed == one->completed_seq.has_value()))
      tasks.push_back(*std::move(one));
  } else {
    ASSIGN_OR_RETURN(tasks, list_tasks(*found.reader, found.run->run_id, completed, after, limit + 1));
  }
  json::Writer out;
  out.begin_object().key("tasks").begin_array();
  std::size_t count = 0;
  while (count < tasks.size() && count < limit && out.text().size() < limits::page_bytes_max)
    write_task(out, tasks[count++]);
  out.end_array();
  if (count > 0 && count < tasks.size()) out.member("cursor", std::to_string(tasks[count - 1].seq));
  return Answer(Reply{std::move(out.end_object()).text(), {}});
}

}  // namespace muniment::gateway::methods
