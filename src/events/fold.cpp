// Folds events into a run's state: one rule per type, as specified in docs/format.md (State, Rules by type). It runs
// for every event of every active run, so a body is parsed only if its type's rule reads it.
#include <limits>

#include "events/catalogue.hpp"
#include "events/run_state.hpp"

namespace muniment::events {
namespace {

using json::Kind;
using json::Value;

constexpr std::string_view state_mime_type = "application/vnd.muniment.state+json";
constexpr std::size_t currencies_max = 100;

Text text(const Value& value) { return value.as_string(); }

std::int64_t natural(const Value& value) {
  const auto number = value.as_int();
  return number && *number > 0 ? *number : 0;
}

Scalar scalar(const Value& value) {
  if (!value) return std::nullopt;
  switch (value.kind()) {
    case Kind::string: return json::quote(*value.as_string());
    case Kind::number:
    case Kind::boolean: return std::string(value.source());
    case Kind::null:
    case Kind::array:
    case Kind::object: return std::nullopt;
  }
  return std::nullopt;
}

void add(std::int64_t& sum, std::int64_t more) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  sum = sum > most - more ? most : sum + more;
}

std::string step_of(const Event& event) { return event.step_id.value_or("main"); }

// Runs

void run_started(RunState& state, const Event& event, const Value& body) {
  state.status = "open";
  state.origin = std::string(name_of(event.origin));
  state.started_at = event.recorded_at;
  state.agent.reset();
  if (const Value agent = body["agent"]; agent.is(Kind::object)) {
    state.agent = AgentState{text(agent["name"]), text(agent["id"]), text(agent["version"])};
  }
  state.goal = text(body["goal"]);
  state.parent.reset();
  if (const Value parent = body["parent"]; parent.is(Kind::object)) {
    state.parent = ParentState{text(parent["run_id"]), natural(parent["run_seq"])};
  }
  state.labels.clear();
  if (const Value labels = body["labels"]; labels.is(Kind::object)) {
    for (Value label : labels) {
      if (Scalar value = scalar(label)) state.labels.insert_or_assign(label.key(), *std::move(value));
    }
  }
}

void run_halted(RunState& state, const Event& event, const Value& body) {
  state.status = "halted";
  if (state.halt) return;  // the first reason is kept
  state.halt = HaltState{text(body["code"]),
                         text(body["reason"]),
                         text(body["pointer"]),
                         text(body["expected"]),
                         text(body["actual"]),
                         natural(body["attempts"]),
                         event.seq,
                         event.recorded_at};
}

void run_resumed(RunState& state) {
  state.status = "open";
  state.outcome.reset();
  state.halt.reset();
}

void run_annotated(RunState& state, const Value& body) {
  const Value changes = body["labels"];
  if (!changes.is(Kind::object)) return;
  auto labels = state.labels;
  for (Value change : changes) {
    if (change.is(Kind::null)) {
      labels.erase(change.key());
    } else if (Scalar value = scalar(change)) {
      labels.insert_or_assign(change.key(), *std::move(value));
    }
  }
  if (labels_bytes(labels) <= run_labels_bytes_max) {
    state.labels = std::move(labels);
  } else {
    add(state.labels_refused, 1);
  }
}

// Calls, approvals, children

void call_opened(RunState& state, const Event& event, const Value& body, std::string_view kind, Text name) {
  Text id = text(body["call_id"]);
  if (!id) return;
  const auto is = [&, key = *id](const PendingCall& call) { return call.kind == kind && call.call_id == key; };
  state.calls.open({*std::move(id), kind, std::move(name), event.run_seq}, is, state.pending_dropped);
}

void call_closed(RunState& state, const Value& body, std::string_view kind) {
  const Text id = text(body["call_id"]);
  if (id) state.calls.close([&](const PendingCall& call) { return call.kind == kind && call.call_id == *id; });
}

void approval_requested(RunState& state, const Event& event, const Value& body) {
  Text id = text(body["approval_id"]);
  if (!id) return;
  const auto is = [key = *id](const PendingApproval& approval) { return approval.approval_id == key; };
  state.approvals.open({*std::move(id), text(body["call_id"]), event.run_seq}, is, state.pending_dropped);
}

void approval_decided(RunState& state, const Value& body) {
  const Text id = text(body["approval_id"]);
  if (id) state.approvals.close([&](const PendingApproval& approval) { return approval.approval_id == *id; });
}

void child_started(RunState& state, const Event& event, const Value& body) {
  Text id = text(body["run_id"]);
  if (!id) return;
  const auto is = [key = *id](const PendingChild& child) { return child.run_id == key; };
  state.children.open({*std::move(id), text(body["kind"]), false, event.run_seq}, is, state.pending_dropped);
}

void child_ended(RunState& state, const Value& body) {
  const Text id = text(body["run_id"]);
  if (id) state.children.close([&](const PendingChild& child) { return child.run_id == *id; });
}

void child_halted(RunState& state, const Value& body) {
  const Text id = text(body["run_id"]);
  for (PendingChild& child : state.children.items) {
    if (id && child.run_id == *id) child.halted = true;
  }
}

// Steps, plan, context

void step_started(RunState& state, const Event& event, const Value& body) {
  std::string id = step_of(event);
  const auto is = [key = id](const OpenStep& step) { return step.step_id == key; };
  state.steps.open({std::move(id), text(body["name"]), text(body["kind"]), text(body["parent_step_id"]), event.run_seq},
                   is, state.steps_dropped);
}

void step_ended(RunState& state, const Event& event) {
  const std::string id = step_of(event);
  state.steps.close([&](const OpenStep& step) { return step.step_id == id; });
  add(state.steps_done, 1);
}

void plan_updated(RunState& state, const Value& body) {
  state.plan.clear();
  const Value items = body["items"];
  if (!items.is(Kind::array)) return;
  for (Value item : items) {
    if (item.is(Kind::object)) state.plan.push_back({text(item["id"]), text(item["text"]), text(item["status"])});
  }
}

void manifest_named(RunState& state, const Value& body) {
  if (Text id = text(body["manifest_id"])) state.manifest_id = std::move(id);
}

void context_compacted(RunState& state, const Event& event, const Value& body) {
  manifest_named(state, body);
  state.message_count = 0;
  state.first_message.reset();
  state.last_message.reset();
  state.compacted_at = event.run_seq;
}

void message(RunState& state, const Event& event) {
  add(state.message_count, 1);
  if (!state.first_message) state.first_message = event.run_seq;
  state.last_message = event.run_seq;
}

// Claims, tasks, budgets

void item_opened(OpenList<OpenItem>& list, const Event& event, const Value& key, std::int64_t& dropped) {
  Text id = text(key);
  if (!id) return;
  const auto is = [wanted = *id](const OpenItem& item) { return item.id == wanted; };
  list.open({*std::move(id), event.run_seq}, is, dropped);
}

void item_closed(OpenList<OpenItem>& list, const Value& key) {
  const Text id = text(key);
  if (id) list.close([&](const OpenItem& item) { return item.id == *id; });
}

void budget_exceeded(RunState& state, const Event& event, const Value& body) {
  add(state.budgets_exceeded, 1);
  state.last_budget = LastBudget{text(body["budget"]), scalar(body["limit"]), scalar(body["used"]), event.run_seq};
}

// Usage, artifacts

bool add_cost(RunState& state, const Value& cost) {
  const Text currency = text(cost["currency"]);
  const Value amount = cost["amount"];
  if (!currency || !(amount.is(Kind::number) || amount.is(Kind::string))) return false;
  const auto picos = parse_amount(amount.is(Kind::number) ? std::string(amount.source()) : *amount.as_string());
  if (!picos) return false;
  if (!state.cost.contains(*currency) && state.cost.size() >= currencies_max) return false;
  state.cost[*currency] += *picos;
  return true;
}

void usage_reported(RunState& state, const Value& usage) {
  if (!usage.is(Kind::object)) return;
  add(state.input_tokens, natural(usage["input_tokens"]));
  add(state.output_tokens, natural(usage["output_tokens"]));
  const Value cost = usage["cost"];
  if (cost && !cost.is(Kind::null) && !add_cost(state, cost)) add(state.uncounted, 1);
}

void artifact_stored(RunState& state, const Value& body) {
  add(state.artifact_count, 1);
  add(state.artifact_bytes, natural(body["size_bytes"]));
}

// Dispatch

// Some lines have several types.
// clang-format off
bool reads_body(Type type) {
  switch (type) {
    case Type::run_started:
    case Type::run_ended:
    case Type::run_halted:
    case Type::run_annotated:
    case Type::step_started:
    case Type::model_called:
    case Type::model_answered:
    case Type::tool_called:
    case Type::tool_returned:
    case Type::command_started:
    case Type::command_ended:
    case Type::approval_requested:
    case Type::approval_decided:
    case Type::child_started:
    case Type::child_ended:
    case Type::child_halted:
    case Type::context_built:
    case Type::context_compacted:
    case Type::plan_updated:
    case Type::claim_recorded:
    case Type::claim_decided:
    case Type::task_opened:
    case Type::task_completed:
    case Type::budget_exceeded:
    case Type::artifact_stored:
    case Type::state_patched: return true;
    case Type::run_interrupted:
    case Type::run_resumed:
    case Type::step_ended:
    case Type::message_added:
    case Type::thought_recorded:
    case Type::access_refused:
    case Type::artifact_redacted:
    case Type::clock_stepped:
    case Type::document_retracted:
    case Type::document_revised:
    case Type::embedder_trained:
    case Type::error_raised:
    case Type::event_redacted:
    case Type::evidence_linked:
    case Type::evidence_recorded:
    case Type::feedback_recorded:
    case Type::file_changed:
    case Type::file_read:
    case Type::key_rotated:
    case Type::log_archived:
    case Type::log_exported:
    case Type::log_restored:
    case Type::log_resumed:
    case Type::log_started:
    case Type::log_stopped:
    case Type::log_verified:
    case Type::manifest_recorded:
    case Type::artifact_read:
    case Type::pointer_rendered:
    case Type::pointer_resolved:
    case Type::pointer_validated:
    case Type::pointer_retried:
    case Type::pointer_unresolved: case Type::question_answered:
    case Type::retrieval_answered:
    case Type::cloud_answered: case Type::cloud_asked: case Type::cloud_failed: case Type::cloud_refused:
    case Type::sandbox_refused: case Type::snapshot_taken: case Type::source_revoked:
    case Type::task_validated:
    case Type::violation_detected:
    case Type::foreign: return false;
  }
  return false;
}
// clang-format on

void apply_rule(RunState& state, Type type, const Event& event, const Value& body, std::string_view spilled_patch) {
  switch (type) {
    case Type::run_started: return run_started(state, event, body);
    case Type::run_ended:
      state.status = "ended";
      state.outcome = text(body["outcome"]);
      return;
    case Type::run_halted: return run_halted(state, event, body);
    case Type::run_resumed: return run_resumed(state);
    case Type::run_annotated: return run_annotated(state, body);
    case Type::step_started: return step_started(state, event, body);
    case Type::step_ended: return step_ended(state, event);
    case Type::model_called:
      call_opened(state, event, body, "model", text(body["model"]));
      return manifest_named(state, body);
    case Type::model_answered: call_closed(state, body, "model"); return usage_reported(state, body["usage"]);
    case Type::tool_called: return call_opened(state, event, body, "tool", text(body["name"]));
    case Type::tool_returned: return call_closed(state, body, "tool");
    case Type::command_started: {
      const Value argv = body["argv"];
      const bool named = argv.is(Kind::array) && argv.size() > 0;
      return call_opened(state, event, body, "command", named ? text(*argv.begin()) : Text());
    }
    case Type::command_ended: return call_closed(state, body, "command");
    case Type::approval_requested: return approval_requested(state, event, body);
    case Type::approval_decided: return approval_decided(state, body);
    case Type::child_started: return child_started(state, event, body);
    case Type::child_ended: return child_ended(state, body);
    case Type::child_halted: return child_halted(state, body);
    case Type::context_built: return manifest_named(state, body);
    case Type::context_compacted: return context_compacted(state, event, body);
    case Type::plan_updated: return plan_updated(state, body);
    case Type::claim_recorded:
      add(state.claim_count, 1);
      return item_opened(state.claims, event, body["claim_id"], state.claims_dropped);
    case Type::claim_decided: return item_closed(state.claims, body["claim_id"]);
    case Type::task_opened:
      add(state.tasks_opened, 1);
      return item_opened(state.tasks, event, body["task_id"], state.tasks_dropped);
    case Type::task_completed: add(state.tasks_completed, 1); return item_closed(state.tasks, body["task_id"]);
    case Type::budget_exceeded: return budget_exceeded(state, event, body);
    case Type::artifact_stored: return artifact_stored(state, body);
    case Type::state_patched:
      if (!patch_working(state.working, body, spilled_patch)) add(state.patches_refused, 1);
      return;
      // clang-format off
    case Type::message_added: case Type::thought_recorded:  // counted as messages, whatever their content
    case Type::run_interrupted:  // the run continues, and so does its pending work
    case Type::access_refused: case Type::artifact_redacted: case Type::clock_stepped: case Type::document_retracted:
    case Type::document_revised: case Type::embedder_trained: case Type::error_raised: case Type::event_redacted:
    case Type::evidence_linked: case Type::evidence_recorded: case Type::feedback_recorded: case Type::file_changed:
    case Type::file_read: case Type::key_rotated: case Type::log_archived: case Type::log_exported: case Type::log_restored:
    case Type::log_resumed: case Type::log_started: case Type::log_stopped: case Type::log_verified: case Type::manifest_recorded:
    case Type::artifact_read: case Type::pointer_rendered: case Type::pointer_resolved: case Type::pointer_validated:
    case Type::pointer_retried: case Type::pointer_unresolved: case Type::question_answered: case Type::retrieval_answered:
    case Type::cloud_answered: case Type::cloud_asked: case Type::cloud_failed: case Type::cloud_refused:
    case Type::sandbox_refused: case Type::snapshot_taken: case Type::source_revoked: case Type::task_validated: case Type::violation_detected:
    case Type::foreign:
      return;
      // clang-format on
  }
}

void count(RunState& state, Type type, std::string_view name) {
  if (type != Type::foreign) return add(state.counts[static_cast<std::size_t>(type)], 1);
  if (name.starts_with(foreign_prefix)) name = "x";
  auto known = state.other_counts.find(name);
  if (known == state.other_counts.end()) known = state.other_counts.emplace(name, 0).first;
  add(known->second, 1);
}

bool is_message(Type type) {
  return type == Type::message_added || type == Type::thought_recorded || type == Type::model_answered ||
         type == Type::tool_called || type == Type::tool_returned;
}

}  // namespace

void fold(RunState& state, const Event& event, std::string_view spilled_patch) {
  const Type type = type_named(event.type);
  if (event.seq <= state.seq || type == Type::snapshot_taken) return;

  std::optional<json::Document> document;  // absent: redacted, or not read; folds as {}
  if (event.body && reads_body(type)) {
    if (auto parsed = json::parse(*event.body)) document = *std::move(parsed);
  }
  const Value body = document ? document->root() : Value();
  if (type == Type::artifact_stored && body["mime_type"].string_or("") == state_mime_type) return;

  state.seq = event.seq;
  state.run_seq = event.run_seq;
  state.run_hash = event.run_hash;
  if (state.run_id != event.run_id) state.run_id = event.run_id;
  state.last_event_at = event.recorded_at;
  count(state, type, event.type);
  if (is_message(type)) message(state, event);
  apply_rule(state, type, event, body, spilled_patch);
}

}  // namespace muniment::events
