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
#include "events/catalogue_types.hpp"

namespace muniment::events {
namespace {

// Sorted by name. A test compares each row with schema/event/<name>.json.
constexpr std::array<TypeInfo, type_count - 1> table = {{
    {"access.refused", Type::access_refused, 1, Writer::daemon, "munimentd", Admits::open_only},
    {"approval.decided", Type::approval_decided, 1, Writer::client, "event.append", Admits::open_only},
    {"approval.requested", Type::approval_requested, 1, Writer::client, "event.append", Admits::open_only},
    {"artifact.read", Type::artifact_read, 1, Writer::daemon, "artifact.get", Admits::open_only},
    {"artifact.redacted", Type::artifact_redacted, 1, Writer::daemon, "audit.redact", Admits::ended_and_halted},
    {"artifact.stored", Type::artifact_stored, 1, Writer::daemon, "artifact.put", Admits::open_only},
    {"budget.exceeded", Type::budget_exceeded, 1, Writer::daemon, reserved, Admits::open_only},
    {"child.ended", Type::child_ended, 1, Writer::client, "event.append", Admits::open_only},
    {"child.halted", Type::child_halted, 1, Writer::daemon, "pointer.resolve", Admits::open_only},
    {"child.started", Type::child_started, 1, Writer::client, "event.append", Admits::open_only},
    {"claim.decided", Type::claim_decided, 1, Writer::daemon, "claim.decide", Admits::open_only},
    {"claim.recorded", Type::claim_recorded, 1, Writer::daemon, "claim.record", Admits::open_only},
    {"clock.stepped", Type::clock_stepped, 1, Writer::daemon, "munimentd", Admits::open_only},
    {"command.ended", Type::command_ended, 1, Writer::daemon, "command.end", Admits::open_only},
    {"command.started", Type::command_started, 1, Writer::daemon, "command.start", Admits::open_only},
    {"context.built", Type::context_built, 1, Writer::daemon, "context.build", Admits::open_only},
    {"context.compacted", Type::context_compacted, 1, Writer::client, "event.append", Admits::open_only},
    {"document.retracted", Type::document_retracted, 1, Writer::daemon, "document.retract", Admits::open_only},
    {"document.revised", Type::document_revised, 1, Writer::daemon, "corpus.ingest", Admits::open_only},
    {"embedder.trained", Type::embedder_trained, 1, Writer::daemon, "corpus.ingest", Admits::open_only},
    {"error.raised", Type::error_raised, 1, Writer::client, "event.append", Admits::open_only},
    {"event.redacted", Type::event_redacted, 1, Writer::daemon, "audit.redact", Admits::ended_and_halted},
    {"evidence.linked", Type::evidence_linked, 1, Writer::daemon, "evidence.link", Admits::open_only},
    {"evidence.recorded", Type::evidence_recorded, 1, Writer::daemon, "evidence.record", Admits::open_only},
    {"feedback.recorded", Type::feedback_recorded, 1, Writer::daemon, "feedback.record", Admits::ended_and_halted},
    {"file.changed", Type::file_changed, 1, Writer::client, "event.append", Admits::open_only},
    {"file.read", Type::file_read, 1, Writer::client, "event.append", Admits::open_only},
    {"key.rotated", Type::key_rotated, 1, Writer::daemon, "munimentd", Admits::open_only},
    {"log.archived", Type::log_archived, 1, Writer::daemon, "audit.archive", Admits::open_only},
    {"log.exported", Type::log_exported, 1, Writer::daemon, "munimentd", Admits::open_only},
    {"log.restored", Type::log_restored, 1, Writer::daemon, "munimentd", Admits::open_only},
    {"log.resumed", Type::log_resumed, 1, Writer::daemon, "munimentd", Admits::open_only},
    {"log.started", Type::log_started, 1, Writer::daemon, "munimentd", Admits::open_only},
    {"log.stopped", Type::log_stopped, 1, Writer::daemon, "munimentd", Admits::open_only},
    {"log.verified", Type::log_verified, 1, Writer::daemon, "munimentd", Admits::open_only},
    {"manifest.recorded", Type::manifest_recorded, 1, Writer::daemon, "manifest.put", Admits::open_only},
    {"message.added", Type::message_added, 1, Writer::client, "event.append", Admits::open_only},
    {"model.answered", Type::model_answered, 1, Writer::client, "event.append", Admits::open_only},
    {"model.called", Type::model_called, 1, Writer::client, "event.append", Admits::open_only},
    {"plan.updated", Type::plan_updated, 1, Writer::client, "event.append", Admits::open_only},
    {"pointer.rendered", Type::pointer_rendered, 1, Writer::daemon, "pointer.render", Admits::open_only},
    {"pointer.resolved", Type::pointer_resolved, 1, Writer::daemon, "pointer.resolve", Admits::open_only},
    {"pointer.retried", Type::pointer_retried, 1, Writer::daemon, "pointer.resolve", Admits::ended_and_halted},
    {"pointer.unresolved", Type::pointer_unresolved, 1, Writer::daemon, "pointer.resolve", Admits::ended_and_halted},
    {"pointer.validated", Type::pointer_validated, 1, Writer::daemon, "pointer.validate", Admits::open_only},
    {"retrieval.answered", Type::retrieval_answered, 1, Writer::daemon, "evidence.retrieve", Admits::open_only},
    {"run.annotated", Type::run_annotated, 1, Writer::daemon, "run.annotate", Admits::ended_and_halted},
    {"run.ended", Type::run_ended, 1, Writer::daemon, "run.end", Admits::halted},
    {"run.halted", Type::run_halted, 1, Writer::daemon, "pointer.resolve", Admits::ended},
    {"run.interrupted", Type::run_interrupted, 1, Writer::daemon, "munimentd", Admits::open_only},
    {"run.resumed", Type::run_resumed, 1, Writer::daemon, "run.start", Admits::not_open},
    {"run.started", Type::run_started, 1, Writer::daemon, "run.start", Admits::open_only},
    {"sandbox.refused", Type::sandbox_refused, 1, Writer::client, "event.append", Admits::open_only},
    {"snapshot.taken", Type::snapshot_taken, 1, Writer::daemon, "snapshot.take", Admits::ended_and_halted},
    {"source.revoked", Type::source_revoked, 1, Writer::daemon, "source.revoke", Admits::open_only},
    {"state.patched", Type::state_patched, 1, Writer::client, "event.append", Admits::open_only},
    {"step.ended", Type::step_ended, 1, Writer::client, "event.append", Admits::open_only},
    {"step.started", Type::step_started, 1, Writer::client, "event.append", Admits::open_only},
    {"task.completed", Type::task_completed, 1, Writer::daemon, "task.complete", Admits::open_only},
    {"task.opened", Type::task_opened, 1, Writer::daemon, "task.open", Admits::open_only},
    {"task.validated", Type::task_validated, 1, Writer::daemon, "task.validate", Admits::open_only},
    {"thought.recorded", Type::thought_recorded, 1, Writer::client, "event.append", Admits::open_only},
    {"tool.called", Type::tool_called, 1, Writer::client, "event.append", Admits::open_only},
    {"tool.returned", Type::tool_returned, 1, Writer::client, "event.append", Admits::open_only},
    {"violation.detected", Type::violation_detected, 1, Writer::daemon, "munimentd", Admits::open_only},
}};

static_assert(std::is_sorted(table.begin(), table.end(),
                             [](const TypeInfo& a, const TypeInfo& b) { return a.name < b.name; }));

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

std::span<const TypeInfo> catalogue() { return table; }

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

void seal_own(NewEvent& event) {
#ifdef MUNIMENT_FAILPOINTS
  const auto document = json::parse(event.body);
  const Status fits = document ? check_body(event.type, document->root()) : Status(document.error());
  if (!fits) {
    log_error("an event of the daemon does not match its schema",
              {{"type", event.type}, {"error", fits.error().message}, {"body", event.body}});
    std::abort();
  }
#endif
  seal(event);
}

}  // namespace muniment::events
