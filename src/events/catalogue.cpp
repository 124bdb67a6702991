// The table of core event types, and the checks of types and bodies.
#include "events/catalogue.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/json/schema.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/process/failpoint.hpp"
#include "events/catalogue_types.hpp"

namespace muniment::events {
namespace {

// Sorted by name. A test compares each row with schema/event/<name>.json.
// clang-format off
constexpr std::array<TypeInfo, type_count - 1> table = {{
    {"access.refused", Type::access_refused, 1, Writer::daemon, "munimentd", Admits::open_only,
     {}, "",
     {Weight::quiet, "⊘", "access refused: {reason}", "{principal}, {count} times"},
     "audit_report", Replay::omitted, "report_place",
     "rests: names nothing that is stored; import: it is in the run _log"},
    {"approval.decided", Type::approval_decided, 1, Writer::client, "event.append", Admits::open_only,
     {}, "",
     {Weight::normal, "?", "{decision} by {by}", "{reason}"},
     "approval_report", Replay::appended, "report_span",
     "rests: names nothing that is stored"},
    {"approval.requested", Type::approval_requested, 1, Writer::client, "event.append", Admits::open_only,
     {}, "",
     {Weight::normal, "?", "approval: {question}"},
     "approval_report", Replay::appended, "report_span",
     "rests: names nothing that is stored"},
    {"artifact.read", Type::artifact_read, 1, Writer::daemon, "artifact.get", Admits::open_only,
     {{"/pointer", Names::pointer}}, "",
     {Weight::quiet, "◇", ""},
     "retrieval_report", Replay::omitted, "report_place",
     "critical: reading is no use as evidence; import: only the daemon writes it"},
    {"artifact.redacted", Type::artifact_redacted, 1, Writer::daemon, "audit.redact", Admits::ended_and_halted,
     {}, "",
     {Weight::normal, "▒", "artifact {artifact_id} erased", "{reason}"},
     "audit_report", Replay::omitted, "report_place artifact",
     "rests: its subject is erased; import: only the daemon writes it"},
    {"artifact.stored", Type::artifact_stored, 1, Writer::daemon, "artifact.put", Admits::open_only,
     {{"/artifact_id", Names::artifact}}, "",
     {Weight::quiet, "·", ""},
     "artifact_report", Replay::recorded, "artifact",
     "critical: a file is critical once something rests on it"},
    {"budget.exceeded", Type::budget_exceeded, 1, Writer::daemon, reserved, Admits::open_only,
     {}, "",
     {Weight::error, "✗", "budget {budget} exceeded", "{used} of {limit}, {principal}"},
     "audit_report", Replay::omitted, "report_place",
     "rests: names nothing that is stored; import: only the daemon writes it"},
    {"child.ended", Type::child_ended, 1, Writer::client, "event.append", Admits::open_only,
     {}, "",
     {Weight::normal, "⑂", "child {run_id} {outcome}"},
     "run_tree", Replay::by_run, "",
     "rests: names a run, which has its own dependencies; table: run has the child"},
    {"child.halted", Type::child_halted, 1, Writer::daemon, "pointer.resolve", Admits::open_only,
     {}, "",
     {Weight::error, "⑂", "child {run_id} halted: {reason}"},
     "audit_report", Replay::omitted, "report_place",
     "rests: names a run, which has its own dependencies; import: only the daemon writes it"},
    {"child.started", Type::child_started, 1, Writer::client, "event.append", Admits::open_only,
     {}, "",
     {Weight::normal, "⑂", "child {run_id}"},
     "run_tree", Replay::by_run, "",
     "rests: names a run, which has its own dependencies; table: run has the child"},
    {"claim.decided", Type::claim_decided, 1, Writer::daemon, "claim.decide", Admits::open_only,
     {}, "",
     {Weight::normal, "§", "claim {status}", "{reason}"},
     "claim_report", Replay::recorded, "claim",
     "rests: its claim has the dependencies"},
    {"claim.recorded", Type::claim_recorded, 1, Writer::daemon, "claim.record", Admits::open_only,
     {{"/pointers/*", Names::pointer}}, "claim",
     {Weight::normal, "§", "claim: {text}", "{pointers}"},
     "claim_report", Replay::recorded, "claim pointer",
     ""},
    {"clock.stepped", Type::clock_stepped, 1, Writer::daemon, "munimentd", Admits::open_only,
     {}, "",
     {Weight::quiet, "◷", "clock stepped from {before} to {after}"},
     "audit_report", Replay::omitted, "report_place",
     "rests: names nothing that is stored; import: it is in the run _log"},
    {"cloud.answered", Type::cloud_answered, 1, Writer::daemon, "ask", Admits::ended_and_halted,
     {{"/pointer", Names::pointer}}, "",
     {Weight::normal, "☁", "{provider} replied", "{response_bytes} bytes, {pointer}"},
     "cloud_report", Replay::omitted, "report_place",
     "critical: a reply is no evidence; import: only the daemon writes it"},
    {"cloud.asked", Type::cloud_asked, 1, Writer::daemon, "ask", Admits::open_only,
     {}, "",
     {Weight::normal, "☁", "asked {provider}", "{template}, {prompt_bytes} bytes"},
     "cloud_report", Replay::omitted, "report_place",
     "rests: names nothing that is stored; import: only the daemon writes it"},
    {"cloud.failed", Type::cloud_failed, 1, Writer::daemon, "ask", Admits::ended_and_halted,
     {}, "",
     {Weight::error, "☁", "{provider} gave no answer", "{reason}"},
     "cloud_report", Replay::omitted, "report_place",
     "rests: names nothing that is stored; import: only the daemon writes it"},
    {"cloud.refused", Type::cloud_refused, 1, Writer::daemon, "ask", Admits::open_only,
     {}, "",
     {Weight::normal, "☁", "{provider} was not asked", "{reason}, {rules}"},
     "cloud_report", Replay::omitted, "report_place",
     "rests: names nothing that is stored; import: only the daemon writes it"},
    {"command.ended", Type::command_ended, 1, Writer::daemon, "command.end", Admits::open_only,
     {{"/stdout/artifact_id", Names::artifact}, {"/stderr/artifact_id", Names::artifact}}, "",
     {Weight::normal, "→", ""},
     "command_report", Replay::recorded, "report_span",
     "critical: output is critical once evidence rests on it"},
    {"command.started", Type::command_started, 1, Writer::daemon, "command.start", Admits::open_only,
     {}, "",
     {Weight::normal, "$", ""},
     "command_report", Replay::recorded, "report_span",
     "rests: names nothing that is stored"},
    {"context.built", Type::context_built, 1, Writer::daemon, "context.build", Admits::open_only,
     {{"/manifest_id", Names::manifest}}, "",
     {Weight::normal, "◆", ""},
     "recall_report retrieval_report", Replay::omitted, "report_place",
     "critical: the manifest records its own dependencies; import: only the daemon writes it"},
    {"context.compacted", Type::context_compacted, 1, Writer::client, "event.append", Admits::open_only,
     {{"/summary/*/artifact_id", Names::artifact}, {"/manifest_id", Names::manifest}}, "",
     {Weight::normal, "◇", "context compacted ({trigger})", "{tokens_before} to {tokens_after} tokens"},
     "", Replay::appended, "",
     "critical: a summary is no evidence; view: event_log has it; table: nothing counts it"},
    {"document.retracted", Type::document_retracted, 1, Writer::daemon, "document.retract", Admits::open_only,
     {}, "",
     {Weight::quiet, "▤", "document {document} retracted", "{reason}"},
     "document_report", Replay::omitted, "document chunk",
     "rests: its document has the files; import: it is in the run _log"},
    {"document.revised", Type::document_revised, 1, Writer::daemon, "corpus.ingest", Admits::open_only,
     {{"/artifact_id", Names::artifact}, {"/text_artifact_id", Names::artifact}, {"/chunks_artifact_id", Names::artifact}}, "",
     {Weight::quiet, "▤", "document {document} revised", "{uri}"},
     "document_report", Replay::omitted, "corpus document chunk",
     "critical: a passage is critical once something rests on it; import: it is in the run _log"},
    {"embedder.trained", Type::embedder_trained, 1, Writer::daemon, "corpus.ingest", Admits::open_only,
     {{"/artifact_id", Names::artifact}}, "",
     {Weight::quiet, "·", "embedder {embedder} trained", "corpus {corpus}"},
     "audit_report", Replay::omitted, "report_place",
     "critical: a model can be trained again; import: it is in the run _log"},
    {"error.raised", Type::error_raised, 1, Writer::client, "event.append", Admits::open_only,
     {}, "",
     {Weight::error, "✗", "{error_type}", "{message}"},
     "error_report", Replay::appended, "report_place",
     "rests: names nothing that is stored"},
    {"event.redacted", Type::event_redacted, 1, Writer::daemon, "audit.redact", Admits::ended_and_halted,
     {}, "",
     {Weight::normal, "▒", "event {seq} erased", "{reason}"},
     "audit_report", Replay::omitted, "report_place",
     "rests: names nothing that is stored; import: only the daemon writes it"},
    {"evidence.linked", Type::evidence_linked, 1, Writer::daemon, "evidence.link", Admits::open_only,
     {{"/evidence_id", Names::evidence}}, "claim",
     {Weight::normal, "§", "evidence {relation} a claim", "{evidence_id}"},
     "claim_report", Replay::recorded, "evidence_link pointer",
     ""},
    {"evidence.recorded", Type::evidence_recorded, 1, Writer::daemon, "evidence.record", Admits::open_only,
     {{"/pointer", Names::pointer}, {"/artifacts/*", Names::artifact}, {"/depends_on/*", Names::evidence}}, "evidence",
     {Weight::normal, "§", ""},
     "evidence_report", Replay::recorded, "evidence pointer",
     ""},
    {"feedback.recorded", Type::feedback_recorded, 1, Writer::daemon, "feedback.record", Admits::ended_and_halted,
     {}, "",
     {Weight::normal, "★", "{name}: {value}", "{comment}"},
     "feedback_report", Replay::omitted, "feedback report_place",
     "rests: judges its target and does not rest on it; import: only the daemon writes it"},
    {"file.changed", Type::file_changed, 1, Writer::client, "event.append", Admits::open_only,
     {{"/diff/artifact_id", Names::artifact}}, "",
     {Weight::normal, "✎", "{change} {path}"},
     "file_report", Replay::appended, "report_place",
     "critical: a diff is critical once evidence rests on it"},
    {"file.read", Type::file_read, 1, Writer::client, "event.append", Admits::open_only,
     {}, "",
     {Weight::normal, "▤", "read {path}"},
     "file_report", Replay::appended, "report_place",
     "rests: names nothing that is stored"},
    {"key.rotated", Type::key_rotated, 1, Writer::daemon, "munimentd", Admits::open_only,
     {}, "",
     {Weight::quiet, "⚿", "key rotated", "{reason}"},
     "audit_report", Replay::omitted, "report_place",
     "rests: names nothing that is stored; import: it is in the run _log"},
    {"log.archived", Type::log_archived, 1, Writer::daemon, "audit.archive", Admits::open_only,
     {}, "",
     {Weight::quiet, "▪", "log archived", "{from_seq} to {to_seq} by {by}"},
     "audit_report", Replay::omitted, "report_place",
     "rests: names nothing that is stored; import: it is in the run _log"},
    {"log.exported", Type::log_exported, 1, Writer::daemon, "munimentd", Admits::open_only,
     {}, "",
     {Weight::quiet, "▪", "log exported", "{format} by {by}"},
     "audit_report", Replay::omitted, "report_place",
     "rests: names nothing that is stored; import: it is in the run _log"},
    {"log.restored", Type::log_restored, 1, Writer::daemon, "munimentd", Admits::open_only,
     {}, "",
     {Weight::quiet, "▪", "log restored", "{size} events by {by}"},
     "audit_report", Replay::omitted, "report_place",
     "rests: names nothing that is stored; import: it is in the run _log"},
    {"log.resumed", Type::log_resumed, 1, Writer::daemon, "munimentd", Admits::open_only,
     {}, "",
     {Weight::quiet, "▪", "log resumed", "{reason}"},
     "audit_report", Replay::omitted, "report_place",
     "rests: names nothing that is stored; import: it is in the run _log"},
    {"log.started", Type::log_started, 1, Writer::daemon, "munimentd", Admits::open_only,
     {}, "",
     {Weight::quiet, "▪", "log started", "version {version}"},
     "audit_report", Replay::omitted, "report_place",
     "rests: names nothing that is stored; import: it is in the run _log"},
    {"log.stopped", Type::log_stopped, 1, Writer::daemon, "munimentd", Admits::open_only,
     {}, "",
     {Weight::quiet, "▪", "log stopped", "{reason}"},
     "audit_report", Replay::omitted, "report_place",
     "rests: names nothing that is stored; import: it is in the run _log"},
    {"log.verified", Type::log_verified, 1, Writer::daemon, "munimentd", Admits::open_only,
     {}, "",
     {Weight::quiet, "▪", "log verified: {verdict}", "up to {upto} by {by}"},
     "audit_report", Replay::omitted, "report_place",
     "rests: names nothing that is stored; import: it is in the run _log"},
    {"manifest.recorded", Type::manifest_recorded, 1, Writer::daemon, "manifest.put", Admits::open_only,
     {{"/base", Names::manifest}, {"/manifest_id", Names::entries}}, "manifest",
     {Weight::quiet, "·", "manifest {manifest_id}"},
     "recall_report", Replay::recorded, "manifest pointer",
     ""},
    {"message.added", Type::message_added, 1, Writer::client, "event.append", Admits::open_only,
     {{"/content/*/artifact_id", Names::artifact}}, "",
     {Weight::normal, "‹", ""},
     "", Replay::appended, "document chunk",
     "critical: a message is no evidence; view: event_log has it"},
    {"model.answered", Type::model_answered, 1, Writer::client, "event.append", Admits::open_only,
     {{"/content/*/artifact_id", Names::artifact}}, "",
     {Weight::normal, "◆", ""},
     "model_call", Replay::appended, "report_span document chunk",
     "critical: an answer is no evidence"},
    {"model.called", Type::model_called, 1, Writer::client, "event.append", Admits::open_only,
     {{"/manifest_id", Names::manifest}}, "",
     {Weight::quiet, "◇", "{provider} {model}"},
     "model_call", Replay::appended, "report_span",
     "critical: the manifest records its own dependencies"},
    {"plan.updated", Type::plan_updated, 1, Writer::client, "event.append", Admits::open_only,
     {}, "",
     {Weight::normal, "☰", "plan: {#items} items"},
     "", Replay::appended, "",
     "rests: names nothing that is stored; view: event_log has it; table: the state has the plan"},
    {"pointer.rendered", Type::pointer_rendered, 1, Writer::daemon, "pointer.render", Admits::open_only,
     {{"/pointers/*/pointer", Names::pointer}}, "",
     {Weight::quiet, "◇", ""},
     "retrieval_report", Replay::omitted, "report_place",
     "critical: reading is no use as evidence; import: only the daemon writes it"},
    {"pointer.resolved", Type::pointer_resolved, 1, Writer::daemon, "pointer.resolve", Admits::open_only,
     {{"/pointers/*/pointer", Names::pointer}}, "",
     {Weight::quiet, "◇", ""},
     "retrieval_report", Replay::omitted, "report_place",
     "critical: reading is no use as evidence; import: only the daemon writes it"},
    {"pointer.retried", Type::pointer_retried, 1, Writer::daemon, "pointer.resolve", Admits::ended_and_halted,
     {}, "",
     {Weight::normal, "↻", "retried {pointer}"},
     "audit_report", Replay::omitted, "report_place",
     "rests: reports on its pointer and does not rest on it; import: only the daemon writes it"},
    {"pointer.unresolved", Type::pointer_unresolved, 1, Writer::daemon, "pointer.resolve", Admits::ended_and_halted,
     {}, "",
     {Weight::error, "✗", ""},
     "audit_report", Replay::omitted, "report_place",
     "rests: reports on its pointer and does not rest on it; import: only the daemon writes it"},
    {"pointer.validated", Type::pointer_validated, 1, Writer::daemon, "pointer.validate", Admits::open_only,
     {{"/pointers/*/pointer", Names::pointer}}, "",
     {Weight::quiet, "◇", ""},
     "retrieval_report", Replay::omitted, "report_place",
     "critical: reading is no use as evidence; import: only the daemon writes it"},
    {"question.answered", Type::question_answered, 1, Writer::daemon, "ask", Admits::open_only,
     {{"/manifest_id", Names::manifest}, {"/citations/*/pointer", Names::pointer}}, "",
     {Weight::normal, "◆", ""},
     "recall_report retrieval_report", Replay::omitted, "report_place",
     "critical: the manifest records its own dependencies; import: only the daemon writes it"},
    {"retrieval.answered", Type::retrieval_answered, 1, Writer::daemon, "evidence.retrieve", Admits::open_only,
     {{"/cards/*/id", Names::pointer}}, "",
     {Weight::normal, "⌕", ""},
     "retrieval_report", Replay::omitted, "report_place",
     "critical: a card is critical once something rests on it; import: only the daemon writes it"},
    {"run.annotated", Type::run_annotated, 1, Writer::daemon, "run.annotate", Admits::ended_and_halted,
     {}, "",
     {Weight::normal, "●", "note", "{note}"},
     "run_report", Replay::recorded, "run",
     "rests: names nothing that is stored"},
    {"run.ended", Type::run_ended, 1, Writer::daemon, "run.end", Admits::halted,
     {}, "",
     {Weight::normal, "■", ""},
     "run_report", Replay::by_run, "run report_place",
     "rests: names nothing that is stored"},
    {"run.halted", Type::run_halted, 1, Writer::daemon, "pointer.resolve", Admits::ended,
     {}, "",
     {Weight::loud, "■", ""},
     "run_report error_report audit_report", Replay::omitted, "run report_place",
     "rests: reports on its pointer and does not rest on it; import: only the daemon writes it"},
    {"run.interrupted", Type::run_interrupted, 1, Writer::daemon, "munimentd", Admits::open_only,
     {}, "",
     {Weight::normal, "●", "interrupted", "the daemon ended without stopping, and started again (log #{log_seq})"},
     "audit_report", Replay::omitted, "report_place",
     "rests: names nothing that is stored; import: only the daemon writes it"},
    {"run.resumed", Type::run_resumed, 1, Writer::daemon, "run.start", Admits::not_open,
     {}, "",
     {Weight::normal, "●", "run {kind}", "{why}"},
     "run_report audit_report", Replay::omitted, "run report_place",
     "rests: names nothing that is stored; import: only the daemon writes it"},
    {"run.started", Type::run_started, 1, Writer::daemon, "run.start", Admits::open_only,
     {}, "",
     {Weight::normal, "●", ""},
     "run_report run_tree", Replay::by_run, "run",
     "rests: names nothing that is stored"},
    {"sandbox.refused", Type::sandbox_refused, 1, Writer::client, "event.append", Admits::open_only,
     {}, "",
     {Weight::error, "⊘", ""},
     "audit_report", Replay::appended, "report_place",
     "rests: names nothing that is stored"},
    {"snapshot.taken", Type::snapshot_taken, 1, Writer::daemon, "snapshot.take", Admits::ended_and_halted,
     {{"/artifact_id", Names::artifact}}, "",
     {Weight::quiet, "·", ""},
     "", Replay::omitted, "snapshot",
     "critical: a state can be folded again; view: event_log has it; import: the new run takes its own snapshots"},
    {"source.revoked", Type::source_revoked, 1, Writer::daemon, "source.revoke", Admits::open_only,
     {}, "",
     {Weight::quiet, "▤", "source {source} revoked", "{reason}"},
     "audit_report", Replay::omitted, "document chunk report_place",
     "rests: its documents are no longer served; import: it is in the run _log"},
    {"state.patched", Type::state_patched, 1, Writer::client, "event.append", Admits::open_only,
     {{"/ref/artifact_id", Names::artifact}}, "",
     {Weight::quiet, "Δ", ""},
     "", Replay::appended, "snapshot",
     "critical: a state is no evidence; view: event_log has it"},
    {"step.ended", Type::step_ended, 1, Writer::client, "event.append", Admits::open_only,
     {{"/ref/artifact_id", Names::artifact}}, "",
     {Weight::quiet, "▴", ""},
     "step_report", Replay::appended, "report_span document chunk",
     "critical: a result is critical once evidence rests on it"},
    {"step.started", Type::step_started, 1, Writer::client, "event.append", Admits::open_only,
     {}, "",
     {Weight::normal, "▾", ""},
     "step_report", Replay::appended, "report_span",
     "rests: names nothing that is stored"},
    {"task.completed", Type::task_completed, 1, Writer::daemon, "task.complete", Admits::open_only,
     {{"/evidence_ids/*", Names::evidence}}, "evidence",
     {Weight::normal, "☑", ""},
     "task_report", Replay::omitted, "task_change task_evidence pointer",
     "import: the evidence of another log is not judged again"},
    {"task.opened", Type::task_opened, 1, Writer::daemon, "task.open", Admits::open_only,
     {}, "",
     {Weight::normal, "☐", ""},
     "task_report", Replay::omitted, "task_change",
     "rests: names nothing that is stored; import: the evidence of another log is not judged again"},
    {"task.validated", Type::task_validated, 1, Writer::daemon, "task.validate", Admits::open_only,
     {{"/evidence_ids/*", Names::evidence}}, "",
     {Weight::quiet, "☐", ""},
     "task_validation", Replay::omitted, "report_place",
     "critical: only a completion rests on its evidence; import: the evidence of another log is not judged again"},
    {"thought.recorded", Type::thought_recorded, 1, Writer::client, "event.append", Admits::open_only,
     {{"/content/*/artifact_id", Names::artifact}}, "",
     {Weight::normal, "…", ""},
     "", Replay::appended, "document chunk",
     "critical: a thought is no evidence; view: event_log has it"},
    {"tool.called", Type::tool_called, 1, Writer::client, "event.append", Admits::open_only,
     {{"/ref/artifact_id", Names::artifact}}, "",
     {Weight::normal, "▸", ""},
     "tool_call", Replay::appended, "report_span document chunk",
     "critical: arguments are no evidence"},
    {"tool.returned", Type::tool_returned, 1, Writer::client, "event.append", Admits::open_only,
     {{"/content/*/artifact_id", Names::artifact}}, "",
     {Weight::normal, "→", ""},
     "tool_call", Replay::appended, "report_span document chunk",
     "critical: a result is critical once evidence rests on it"},
    {"violation.detected", Type::violation_detected, 1, Writer::daemon, "munimentd", Admits::open_only,
     {}, "",
     {Weight::error, "✗", "violation: {kind}", "{detail}"},
     "audit_report", Replay::omitted, "report_place",
     "rests: reports on its subject and does not rest on it; import: only the daemon writes it"},
}};
// clang-format on

static_assert(std::is_sorted(table.begin(), table.end(),
                             [](const TypeInfo& a, const TypeInfo& b) { return a.name < b.name; }));

// Returns whether a list separated by blanks has the word.
bool has_word(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(' '), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

// Calls `take` with each text that the JSON pointer `at` leads to.
void walk(const json::Value& value, std::string_view at, const std::function<void(const std::string&)>& take) {
  if (at.empty()) {
    if (const auto text = value.as_string()) take(*text);
    return;
  }
  at.remove_prefix(1);
  const std::string_view segment = at.substr(0, at.find('/'));
  at.remove_prefix(segment.size());
  if (segment != "*") return walk(value[segment], at, take);
  for (const json::Value item : value) walk(item, at, take);
}

bool is_segment(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

Error unknown_type(std::string_view name) {
  std::vector<std::string_view> names;
  for (const TypeInfo& row : table) {
    if (row.writer == Writer::client) names.push_back(row.name);  // suggest only types that clients may write
  }
  std::string message = "unknown event type " + json::quote(name) + ".";
  if (const std::string_view near = nearest(name, names); !near.empty()) {
    message += " Did you mean " + json::quote(near) + "?";
  }
  return {Errc::invalid_argument, message + " Own types start with \"x.\"."};
}

// The schemas of the bodies, by type. They are compiled into the program, so a failure to load one is a build fault.
class BodySchemas {
 public:
  static const BodySchemas& get() {
    static const BodySchemas schemas;  // immutable: shared by all threads
    return schemas;
  }

  Status check(Type type, const json::Value& body) const {
    if (!problem_.empty()) return Error(Errc::system_error, problem_);
    return schemas_[static_cast<std::size_t>(type)]->validate(body, "body");
  }

 private:
  BodySchemas() : set_(SchemaSet::embedded()) {
    if (!set_) {
      problem_ = set_.error().message;
      return;
    }
    for (const TypeInfo& row : table) {
      auto& schema = schemas_[static_cast<std::size_t>(row.type)];
      schema = set_->find("event/" + std::string(row.name));
      if (!schema) problem_ = "no schema for the event type " + std::string(row.name);
    }
  }

  Result<SchemaSet> set_;
  std::array<std::optional<Schema>, type_count> schemas_;
  std::string problem_;
};

}  // namespace

bool TypeInfo::has_view(std::string_view view) const { return has_word(views, view); }

bool TypeInfo::has_table(std::string_view wanted) const { return has_word(tables, wanted); }

std::string_view TypeInfo::reason_for(std::string_view cell) const {
  std::string_view rest = because;
  while (!rest.empty()) {
    const std::string_view reason = rest.substr(0, rest.find("; "));
    if (reason.starts_with(cell) && reason.substr(cell.size()).starts_with(": ")) return reason.substr(cell.size() + 2);
    rest.remove_prefix(std::min(reason.size() + 2, rest.size()));
  }
  return {};
}

std::span<const TypeInfo> catalogue() { return table; }

std::vector<std::string> types_where(const std::function<bool(const TypeInfo&)>& wanted) {
  std::vector<std::string> names;
  for (const TypeInfo& row : table) {
    if (wanted(row)) names.emplace_back(row.name);
  }
  return names;
}

void each_named(const TypeInfo& type, const json::Value& body,
                const std::function<void(Names names, const std::string& text)>& take) {
  for (const Rest& member : type.rests_on)
    walk(body, member.at, [&](const std::string& text) { take(member.names, text); });
}

const TypeInfo* find_type(std::string_view name) {
  const auto row = std::lower_bound(table.begin(), table.end(), name,
                                    [](const TypeInfo& known, std::string_view wanted) { return known.name < wanted; });
  return row != table.end() && row->name == name ? &*row : nullptr;
}

Type type_named(std::string_view name) {
  const TypeInfo* row = find_type(name);
  return row != nullptr ? row->type : Type::foreign;
}

bool is_foreign(std::string_view name) {
  if (!name.starts_with(foreign_prefix) || name.size() > limits::event_type_bytes_max) return false;
  name.remove_prefix(foreign_prefix.size());
  std::size_t segments = 0;
  while (true) {
    const std::size_t dot = name.find('.');
    if (!is_segment(name.substr(0, dot))) return false;
    ++segments;
    if (dot == std::string_view::npos) return segments >= 2;
    name.remove_prefix(dot + 1);
  }
}

Status check_client_may_write(std::string_view type) {
  if (type.starts_with(foreign_prefix)) {
    if (is_foreign(type)) return success();
    return Error(Errc::invalid_argument,
                 json::quote(type) +
                     " is not an own type. Write x.<vendor>.<name>: letters, digits, \"_\" and \"-\", at most " +
                     std::to_string(limits::event_type_bytes_max) + " bytes.");
  }
  const TypeInfo* info = find_type(type);
  if (info == nullptr) return unknown_type(type);
  if (info->writer == Writer::client) return success();
  if (info->written_by == reserved) {
    return Error(Errc::denied, json::quote(type) + " is reserved. Own types start with \"x.\".");
  }
  const std::string how = info->written_by == daemon_itself ? "the daemon itself; no method writes it."
                                                            : "the daemon. Call " + std::string(info->written_by) + ".";
  return Error(Errc::denied, json::quote(type) + " is written by " + how);
}

Status check_body(std::string_view type, const json::Value& body) {
  if (!body.is(json::Kind::object)) return Error(Errc::invalid_argument, "body: expected object");
  if (type.starts_with(foreign_prefix)) return success();
  const TypeInfo* info = find_type(type);
  if (info == nullptr) return unknown_type(type);
  return BodySchemas::get().check(info->type, body);
}

namespace {

// Ends a tested daemon that writes an event which does not match its schema.
void must_fit(const NewEvent& event) {
  const auto document = json::parse(event.body);
  const Status fits = document ? check_body(event.type, document->root()) : Status(document.error());
  if (fits) return;
  log_error("an event of the daemon does not match its schema",
            {{"type", event.type}, {"error", fits.error().message}, {"body", event.body}});
  std::abort();
}

}  // namespace

void seal_own(NewEvent& event) {
  if (failpoint::present) must_fit(event);
  seal(event);
}

}  // namespace muniment::events
