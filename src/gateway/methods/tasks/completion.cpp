// task.validate and task.complete: collect the evidence (pieces.cpp), judge it (evidence/completion/) and ask the
// policy's custom validators. The findings are committed before the reply.
#include <algorithm>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "base/process/failpoint.hpp"
#include "base/text.hpp"
#include "evidence/completion/completion.hpp"
#include "evidence/completion/policy.hpp"
#include "gateway/access.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/methods/tasks/custom_validators.hpp"
#include "gateway/methods/tasks/pieces.hpp"
#include "gateway/methods/tasks/task_record.hpp"
#include "gateway/read/pointing.hpp"
#include "gateway/services.hpp"

namespace muniment::gateway::methods {
namespace {

namespace completion = evidence::completion;

std::vector<std::string> ids_of(const json::Value& params) {
  std::vector<std::string> ids;
  for (const json::Value item : params["evidence_ids"]) {
    const std::string id = item.string_or("");
    const auto parsed = parse_uuid(id);
    ids.push_back(parsed ? parsed->text() : id);  // one spelling per piece
  }
  return ids;
}

// A task with its evidence and the judgement.
struct Judged {
  std::shared_ptr<store::Run> run{};   // nullptr: no run was named
  std::optional<TaskRecord> record{};  // nullopt: the task was not opened
  completion::Task task{};
  Pieces pieces{};
  completion::Judgement judgement{};
  std::int64_t log_size = 0;  // size of the log before the evidence was read
};

void write_judgement(json::Writer& out, const Judged& judged) {
  const completion::Judgement& judgement = judged.judgement;
  out.member("can_complete", judgement.can_complete).member("verdict", completion::name_of(judgement.verdict));
  out.member("reason", judgement.reason).key("evidence_status").begin_object();
  for (const completion::PieceStatus& status : judgement.evidence_status) {
    out.key(status.evidence_id).begin_object();
    out.member("exists", status.exists).member("valid", status.valid).member("strong", status.strong);
    if (!status.type.empty()) out.member("type", status.type);
    if (!status.actor.empty()) out.member("actor", status.actor);
    if (!status.code.empty()) out.member("code", status.code).member("reason", status.reason);
    out.end_object();
  }
  out.end_object().key("findings").begin_array();
  for (const completion::Finding& finding : judgement.findings) {
    out.begin_object().member("check", finding.check).member("code", finding.code).member("blocks", finding.blocks);
    if (!finding.evidence_id.empty()) out.member("evidence_id", finding.evidence_id);
    out.member("text", finding.text).end_object();
  }
  out.end_array();
  if (judged.run) out.member("run_id", judged.run->run_id);
  if (judged.record) out.member("task_id", judged.record->task_id);
  write_halted(out, judged.pieces.outcome);
}

// Returns the event with which the check of the piece ended, for a recorded or an attested command; nullopt for others.
Result<std::optional<events::Event>> end_of_check(Call& call, const store::EvidenceRow& row,
                                                  const completion::Piece& piece) {
  store::Reader& reader = *call.reader;
  if (row.command_id) {
    ASSIGN_OR_RETURN(const auto run, load_run(call, row.run_id));
    if (!run) return reader.confirmed(reader.event_at(row.seq));
    ASSIGN_OR_RETURN(auto ended, reader.confirmed(reader.event_by_id(
                                     run->view().run_no, make_uuid_v8("command.end/" + row.command_id->text()))));
    if (!ended)
      return Error(Errc::corrupt, fmt::format("the end of command {} is missing: the log was changed. Run "
                                              "muniment-verify",
                                              row.command_id->text()));
    return ended;
  }
  if (piece.attested_by.empty() || !piece.command) return std::optional<events::Event>();
  ASSIGN_OR_RETURN(const std::int64_t seq, reader.seq_as_of(piece.command->ended_at));
  return reader.confirmed(reader.event_at(std::clamp<std::int64_t>(seq, 0, row.seq)));
}

// Returns whether a file.changed event of the run follows the check: the first end of a recorded or attested command,
// or else the newest piece.
Result<bool> files_changed_since(Call& call, const store::Run& run, const Pieces& pieces) {
  store::Reader& reader = *call.reader;
  std::int64_t newest = -1;
  std::optional<events::Event> ended;
  for (std::size_t i = 0; i < pieces.uses.size(); ++i) {
    const auto& use = pieces.uses[i];
    if (!use || use->reader != call.reader) continue;
    newest = std::max(newest, use->row.seq);
    ASSIGN_OR_RETURN(auto end, end_of_check(call, use->row, pieces.pieces[i]));
    if (end && (!ended || end->seq < ended->seq)) ended = std::move(end);
  }
  if (newest < 0) return false;
  if (!ended) {
    ASSIGN_OR_RETURN(ended, reader.confirmed(reader.event_at(newest)));
  }
  store::EventFilter filter;
  filter.run_no = run.view().run_no;
  filter.types = {"file.changed"};
  filter.archived_bodies = false;
  if (ended && ended->run_no == filter.run_no)
    filter.from_run_seq = ended->run_seq + 1;
  else
    filter.from_seq = ended ? ended->seq + 1 : newest + 1;
  ASSIGN_OR_RETURN(const auto events, reader.events(filter, 1));
  RETURN_IF_ERROR(reader.confirm_run(filter, filter.from_seq, std::numeric_limits<std::int64_t>::max()));
  const std::int64_t next_run_seq = run.next_run_seq();
  RETURN_IF_ERROR(reader.check_run(*filter.run_no, next_run_seq - 1, next_run_seq));
  return !events.empty();
}

Result<completion::Task> task_of(const Call& call, const Judged& judged) {
  const json::Value& params = call.params;
  completion::Task task;
  if (judged.record) {
    const TaskRecord& record = *judged.record;
    task = {record.task_id,
            record.content,
            record.type,
            record.required_type,
            record.requires_evidence,
            record.actor,
            record.opened_at,
            "",
            false,
            ""};
    task.tree_opened = record.tree_digest;
    task.workflow = record.workflow;
  } else {
    task.content = params["content"].string_or("");
    task.type = params["type"].string_or("");
    task.required_type = params["required_type"].string_or("");
    task.requires_evidence = params["requires_evidence"].as_bool().value_or(true);
  }
  ASSIGN_OR_RETURN(ClaimedTree tree, claimed_tree(call));
  task.tree_digest = std::move(tree.digest);
  task.tree_observed = tree.observed;
  if (judged.run) task.run_id = judged.run->run_id;
  return task;
}

// Refuses a piece of another run than the task's, if the policy requires the same run.
void require_same_run(Judged& judged, const completion::Policy& policy) {
  if (!policy.same_run || !judged.run) return;
  for (std::size_t i = 0; i < judged.pieces.uses.size(); ++i) {
    const auto& use = judged.pieces.uses[i];
    if (!use || use->row.run_id == judged.run->run_id) continue;
    completion::refuse(judged.judgement,
                       {.check = "relevance",
                        .code = "other_run",
                        .verdict = completion::Verdict::fail,
                        .evidence_id = judged.pieces.pieces[i].evidence_id,
                        .text = "Evidence mismatch: it was recorded in a different run. Record it in the "
                                "run of the task."});
  }
}

// The opened task defines the requirements. A different value in the request is an attempt to change them.
void hold_requirement(Judged& judged, const json::Value& params) {
  const auto said = params["requires_evidence"].as_bool();
  if (!judged.record || !said || *said == judged.record->requires_evidence) return;
  completion::refuse(judged.judgement,
                     {.check = "existence",
                      .code = "requirement_changed",
                      .verdict = completion::Verdict::fail,
                      .violation = "requirement_changed",
                      .text = fmt::format("the task was opened with requires_evidence {}, which cannot be changed",
                                          judged.record->requires_evidence)});
}

Result<Judged> judge(Call& call, std::shared_ptr<store::Run> run, std::optional<TaskRecord> record) {
  Judged judged{.run = std::move(run), .record = std::move(record)};
  ASSIGN_OR_RETURN(judged.task, task_of(call, judged));
  judged.log_size = call.services.appender.status().size;
  const std::string run_id = judged.run ? judged.run->run_id : "";
  ASSIGN_OR_RETURN(judged.pieces,
                   read_pieces(call, ids_of(call.params), {run_id, judged.task.task_id, judged.task.opened_at}));
  if (judged.run) {
    ASSIGN_OR_RETURN(judged.task.files_changed, files_changed_since(call, *judged.run, judged.pieces));
  }
  const bool strict = call.params["strict"].as_bool().value_or(false);
  const completion::Policy policy = call.services.policies.of_type(judged.task.type, strict);
  // A client that opens a task cannot weaken what the policy file requires.
  if (call.services.policies.of_type(judged.task.type).demands_evidence()) judged.task.requires_evidence = true;
  judged.judgement = completion::judge(judged.task, judged.pieces.pieces, policy, call.services.clock.now());
  hold_requirement(judged, call.params);
  require_same_run(judged, policy);
  if (judged.judgement.can_complete) {
    RETURN_IF_ERROR(ask_custom_validators(call, judged.task, judged.pieces.pieces, policy, judged.judgement));
  }
  return judged;
}

void write_ids(json::Writer& body, const Judged& judged) {
  body.key("evidence_ids").begin_array();
  std::set<std::string> written;
  for (const completion::Piece& piece : judged.pieces.pieces) {
    // An unknown id may be any text, so it is omitted.
    if (parse_uuid(piece.evidence_id) && written.insert(piece.evidence_id).second) body.string(piece.evidence_id);
  }
  body.end_array();
}

void write_codes(json::Writer& body, const completion::Judgement& judgement) {
  std::set<std::string_view> codes;
  for (const completion::Finding& finding : judgement.findings) {
    if (finding.blocks) codes.insert(finding.code);
  }
  body.key("codes").begin_array();
  for (const std::string_view code : codes) body.string(code);
  body.end_array();
}

constexpr std::size_t reason_bytes_max = 2000;

// Adds task.validated, and a violation.detected for each kind of violation that was found.
void add_refusal(Call& call, const Judged& judged, bool completing, store::AppendRequest& request) {
  const completion::Judgement& judgement = judged.judgement;
  const std::string step = call.params["step_id"].string_or("");
  if (judged.record) {
    json::Writer body;
    body.begin_object().member("task_id", judged.record->task_id).member("can_complete", judgement.can_complete);
    body.member("verdict", completion::name_of(judgement.verdict));
    body.member("reason", preview(judgement.reason, reason_bytes_max));
    if (completing) body.member("completing", true);
    write_codes(body, judgement);
    write_ids(body, judged);
    request.events.push_back(
        {judged.run, make_event(call, *judged.run, "task.validated", std::move(body.end_object()).text(), step)});
  }
  const std::string task_id = judged.record ? judged.record->task_id : "";
  for (const completion::Finding& finding : judgement.findings) {
    if (!finding.blocks || finding.violation.empty()) continue;
    const Violation violation{std::string(finding.violation), finding.text, task_id, finding.evidence_id};
    request.events.push_back({judged.run, violation_event(call, *judged.run, violation)});
  }
}

// Appends the events of a refusal and then those of its pointers, because a halt is the last event that a run accepts.
Answer answer_with(Call& call, const Judged& judged, store::AppendRequest refusal,
                   std::function<Result<Reply>()> reply) {
  PendingAppend append = append_outcome(judged.pieces.outcome, std::move(reply));
  append.request.actor = call.caller.actor;
  append.request.events.insert(append.request.events.begin(), std::make_move_iterator(refusal.events.begin()),
                               std::make_move_iterator(refusal.events.end()));
  return Answer(std::move(append));
}

std::string completed_json(const Judged& judged, bool completed, bool duplicate, std::int64_t seq) {
  json::Writer out;
  out.begin_object();
  write_judgement(out, judged);
  out.member("completed", completed);
  if (completed) out.member("duplicate", duplicate);
  if (seq >= 0) out.member("seq", seq);
  return std::move(out.end_object()).text();
}

// Answers for a task that is already completed, with this or with other evidence. Send the same evidence_ids, or open a
// new task.
Result<Answer> complete_again(const std::shared_ptr<store::Run>& run, const TaskRecord& task,
                              const json::Value& params) {
  std::vector<std::string> ids = ids_of(params), known = task.evidence_ids;
  std::ranges::sort(ids);
  std::ranges::sort(known);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  if (ids != known) {
    Error error(Errc::conflict,
                fmt::format("task {} was completed at seq {} with other evidence", task.task_id, *task.completed_seq));
    error.run_id = run->run_id;
    return error;
  }
  Judged judged{.run = run, .record = task};
  judged.judgement.can_complete = true;
  judged.judgement.verdict = task.verdict == "weak" ? completion::Verdict::weak : completion::Verdict::pass;
  judged.judgement.reason = "the task was completed with this evidence before";
  return Answer(Reply{completed_json(judged, true, true, *task.completed_seq), {}});
}

Result<TaskRecord> task_named(Call& call, const std::string& run_id) {
  const std::string id = call.params["task_id"].string_or("");
  ASSIGN_OR_RETURN(auto task, find_task(*call.reader, run_id, id));
  if (!task || task->seq < 0)
    return Error(Errc::not_found, fmt::format("no task {} in run {}. Open it first: task.open", id, run_id));
  return std::move(*task);
}

// Serializes two completions, of one run or of two, that use the same content or command.
void name_what_is_spent(Call& call, const Judged& judged, store::AppendRequest& request) {
  request.names_run = call.services.runs.find(log_run_id);
  request.names_known_upto = judged.log_size;
  for (const auto& use : judged.pieces.uses) {
    if (!use) continue;
    request.names.push_back("spends " + to_hex(use->row.hash));
    if (use->row.command_id) request.names.push_back("spends " + use->row.command_id->text());
  }
}

Answer complete(Call& call, const Judged& judged) {
  json::Writer body;
  body.begin_object().member("task_id", judged.record->task_id);
  body.member("verdict", completion::name_of(judged.judgement.verdict));
  write_ids(body, judged);
  store::AppendRequest request;
  request.actor = call.caller.actor;
  request.erasures_seen = call.erasures_seen;
  name_what_is_spent(call, judged, request);
  std::vector<store::TaskEvidenceRow> spent;
  std::set<std::int64_t> seqs;
  body.key("evidence_seqs").begin_array();
  for (const auto& use : judged.pieces.uses) {
    if (!use || use->reader != call.reader || !seqs.insert(use->row.seq).second) continue;
    body.number(use->row.seq);
    spent.push_back({judged.run->run_id, judged.record->task_id, use->row.evidence_id, use->row.seq});
  }
  body.end_array();
  if (!judged.task.tree_digest.empty()) body.member("tree_digest", judged.task.tree_digest);
  request.events.push_back(
      {judged.run, make_event(call, *judged.run, "task.completed", std::move(body.end_object()).text(),
                              call.params["step_id"].string_or(""))});
  request.rows.push_back({0, store::TaskChangeRow{judged.run->run_id, judged.record->task_id, "completed"}});
  for (store::TaskEvidenceRow& row : spent) request.rows.push_back({0, std::move(row)});
  log_outcome(judged.pieces.outcome, request);
  FAILPOINT("task.judged");
  PendingAppend append;
  append.request = std::move(request);
  append.finish = [judged](Services&, const std::vector<events::Receipt>& receipts) -> Result<Reply> {
    return Reply{completed_json(judged, true, false, receipts.back().seq), {}};
  };
  return Answer(std::move(append));
}

}  // namespace

Result<Answer> task_validate(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  const bool opened = call.params["task_id"].present();
  if (opened == call.params["content"].present())
    return Error(Errc::invalid_argument,
                 "send run_id and task_id of an opened task, or the content of a task that was not opened.");
  if (opened && !call.params["run_id"].present())
    return Error(Errc::invalid_argument, "run_id: missing. A task_id is the name of a task in its run.");
  std::shared_ptr<store::Run> run;
  std::optional<TaskRecord> record;
  if (const auto run_id = call.params["run_id"].as_string()) {
    ASSIGN_OR_RETURN(run, find_run(call, *run_id));
    if (opened) {
      ASSIGN_OR_RETURN(record, task_named(call, *run_id));
    }
  }
  RETURN_IF_ERROR(begin_referring(call));
  ASSIGN_OR_RETURN(const Judged judged, judge(call, run, std::move(record)));
  store::AppendRequest refusal;
  if (run && check_open(*run).ok()) add_refusal(call, judged, false, refusal);
  json::Writer out;
  out.begin_object();
  write_judgement(out, judged);
  Reply reply{std::move(out.end_object()).text(), {}};
  if (refusal.events.empty() && judged.pieces.outcome.events.empty()) return Answer(std::move(reply));
  return answer_with(call, judged, std::move(refusal), [reply] { return Result<Reply>(reply); });
}

Result<Answer> task_complete(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  ASSIGN_OR_RETURN(const auto run, find_run(call, call.params["run_id"].string_or("")));
  ASSIGN_OR_RETURN(TaskRecord record, task_named(call, run->run_id));
  if (record.completed_seq) return complete_again(run, record, call.params);
  RETURN_IF_ERROR(check_open(*run));
  RETURN_IF_ERROR(begin_referring(call));
  ASSIGN_OR_RETURN(const Judged judged, judge(call, run, std::move(record)));
  const evidence::Outcome& outcome = judged.pieces.outcome;
  if (outcome.halts.empty() && judged.judgement.can_complete) return complete(call, judged);
  store::AppendRequest refusal;
  add_refusal(call, judged, true, refusal);
  if (!outcome.halts.empty()) {
    const Error error = damage_error(outcome, *outcome.damage(), run);
    return answer_with(call, judged, std::move(refusal), [error]() -> Result<Reply> { return error; });
  }
  const Reply reply{completed_json(judged, false, false, -1), {}};
  return answer_with(call, judged, std::move(refusal), [reply] { return Result<Reply>(reply); });
}

}  // namespace muniment::gateway::methods
