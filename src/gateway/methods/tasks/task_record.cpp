// Reads tasks, and makes the events of violations.
#include "gateway/methods/tasks/task_record.hpp"

#include "base/process/executor_socket.hpp"
#include "base/text.hpp"
#include "gateway/access.hpp"
#include "gateway/request/worker_slots.hpp"
#include "gateway/services.hpp"

namespace muniment::gateway::methods {
namespace {

constexpr std::size_t detail_bytes_max = 2000;
constexpr std::size_t id_bytes_max = 256;

// Returns an event of the task.
Result<events::Event> event_at(store::Reader& reader, std::int64_t seq, std::string_view type, std::string_view run_id,
                               const TaskRecord& task) {
  ASSIGN_OR_RETURN(auto event, reader.confirmed(reader.event_at(seq)));
  bool of_task = event && event->type == type && event->run_id == run_id;
  if (of_task && event->body) {
    ASSIGN_OR_RETURN(const json::Document body, json::parse(*event->body));
    of_task = body.root()["task_id"].as_string() == task.task_id;
  }
  if (of_task) return std::move(*event);
  return Error(Errc::corrupt, "the table of tasks names event " + std::to_string(seq) + ", which is no " +
                                  std::string(type) + " of the task. Run muniment-verify");
}

Status read_opened(store::Reader& reader, std::string_view run_id, TaskRecord& task) {
  task.erased = task.seq < 0;
  if (task.erased) return success();
  ASSIGN_OR_RETURN(const events::Event event, event_at(reader, task.seq, "task.opened", run_id, task));
  task.opened_at = event.recorded_at;
  task.actor = event.actor;
  task.erased = !event.body;
  if (task.erased) return success();
  ASSIGN_OR_RETURN(const json::Document document, json::parse(*event.body));
  const json::Value body = document.root();
  task.content = body["content"].string_or("");
  task.type = body["type"].string_or("");
  task.required_type = body["required_type"].string_or("");
  task.tree_digest = body["tree_digest"].string_or("");
  task.workflow = body["workflow"].string_or("");
  task.requires_evidence = body["requires_evidence"].as_bool().value_or(true);
  return success();
}

Status read_completed(store::Reader& reader, std::string_view run_id, TaskRecord& task) {
  if (!task.completed_seq) return success();
  ASSIGN_OR_RETURN(const events::Event event, event_at(reader, *task.completed_seq, "task.completed", run_id, task));
  task.completed_at = event.recorded_at;
  if (!event.body) return success();
  ASSIGN_OR_RETURN(const json::Document document, json::parse(*event.body));
  task.verdict = document.root()["verdict"].string_or("");
  for (const json::Value id : document.root()["evidence_ids"]) task.evidence_ids.push_back(id.string_or(""));
  return success();
}

Result<TaskRecord> read_task(store::Reader& reader, std::string_view run_id, const store::TaskPlace& row) {
  TaskRecord task;
  task.task_id = row.task_id;
  task.seq = row.opened_seq;
  task.completed_seq = row.completed_seq;
  RETURN_IF_ERROR(read_opened(reader, run_id, task));
  RETURN_IF_ERROR(read_completed(reader, run_id, task));
  return task;
}

}  // namespace

Result<std::optional<TaskRecord>> find_task(store::Reader& reader, std::string_view run_id, std::string_view task_id) {
  ASSIGN_OR_RETURN(const auto row, reader.task(run_id, task_id));
  if (!row) return std::optional<TaskRecord>();
  ASSIGN_OR_RETURN(TaskRecord task, read_task(reader, run_id, *row));
  return std::optional(std::move(task));
}

Result<std::vector<TaskRecord>> list_tasks(store::Reader& reader, std::string_view run_id,
                                           std::optional<bool> completed, std::int64_t after_seq, std::size_t limit) {
  ASSIGN_OR_RETURN(const auto rows, reader.tasks(run_id, completed, after_seq, limit));
  std::vector<TaskRecord> tasks;
  for (const store::TaskPlace& row : rows) {
    ASSIGN_OR_RETURN(TaskRecord task, read_task(reader, run_id, row));
    tasks.push_back(std::move(task));
  }
  return tasks;
}

events::NewEvent violation_event(Call& call, const store::Run& run, const Violation& violation) {
  json::Writer body;
  body.begin_object().member("kind", violation.kind).member("detail", preview(violation.detail, detail_bytes_max));
  const auto add_id = [&](std::string_view name, const std::string& id) {  // the client may send any text as id
    if (!id.empty() && id.size() <= id_bytes_max) body.member(name, id);
  };
  add_id("task_id", violation.task_id);
  add_id("evidence_id", violation.evidence_id);
  return make_event(call, run, "violation.detected", std::move(body.end_object()).text(),
                    call.params["step_id"].string_or(""));
}

void log_violation(Call& call, const std::shared_ptr<store::Run>& run, const Violation& violation) {
  store::AppendRequest request;
  request.actor = call.caller.actor;
  request.events.push_back({.run = run, .event = violation_event(call, *run, violation), .if_open = true});
  call.services.appender.submit(std::move(request)).ok();
}

Result<ClaimedTree> claimed_tree(const Call& call) {
  ClaimedTree tree{call.params["tree_digest"].string_or(""), false};
  const std::string folder = call.params["folder"].string_or(call.caller.folder);
  // A client of HTTP is no process of this machine, so that the folder would not be the client's.
  if (folder.empty() || call.services.executor.empty() || call.caller.process == 0) return tree;
  if (!folder.starts_with('/')) return Error(Errc::invalid_argument, "folder: expected an absolute path.");
  const WorkerSlot computing(call.services.tree_digests);
  RETURN_IF_ERROR(computing.admitted("requests already compute the digest of a working tree"));
  auto digest = digest_of_tree(call.services.executor, call.caller.uid, call.caller.process, folder, call.deadline);
  if (!digest && digest.error().code == Errc::deadline_exceeded) return digest.error();
  if (digest && !digest->empty()) tree = {*std::move(digest), true};
  return tree;
}

}  // namespace muniment::gateway::methods
