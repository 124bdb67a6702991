// Writes the state document in canonical form (the members of every object sorted by name), and reads it.
#include "events/catalogue.hpp"
#include "events/run_state.hpp"

namespace muniment::events {
namespace {

using json::Kind;
using json::Value;

constexpr std::int64_t document_schema = 1;
constexpr std::string_view call_kinds[] = {"model", "tool", "command"};

// Writing

void put(json::Writer& out, std::string_view name, const Text& text) {
  out.key(name);
  text ? out.string(*text) : out.null();
}

void put(json::Writer& out, std::string_view name, const std::optional<std::int64_t>& number) {
  out.key(name);
  number ? out.number(*number) : out.null();
}

void put(json::Writer& out, std::string_view name, const std::optional<Time>& time) {
  out.key(name);
  time ? out.string(format_time(*time)) : out.null();
}

void put_scalar(json::Writer& out, std::string_view name, const Scalar& scalar) {
  out.raw_member(name, scalar.value_or("null"));
}

void write_item(json::Writer& out, const OpenStep& step) {
  put(out, "kind", step.kind);
  put(out, "name", step.name);
  put(out, "parent_step_id", step.parent_step_id);
  out.member("run_seq", step.run_seq).member("step_id", step.step_id);
}

void write_item(json::Writer& out, const PendingCall& call) {
  out.member("call_id", call.call_id).member("kind", call.kind);
  put(out, "name", call.name);
  out.member("run_seq", call.run_seq);
}

void write_item(json::Writer& out, const PendingApproval& approval) {
  out.member("approval_id", approval.approval_id);
  put(out, "call_id", approval.call_id);
  out.member("run_seq", approval.run_seq);
}

void write_item(json::Writer& out, const PendingChild& child) {
  out.member("halted", child.halted);
  put(out, "kind", child.kind);
  out.member("run_id", child.run_id).member("run_seq", child.run_seq);
}

void write_item(json::Writer& out, const PlanItem& item) {
  put(out, "id", item.id);
  put(out, "status", item.status);
  put(out, "text", item.text);
}

template <typename Items>
void write_list(json::Writer& out, std::string_view name, const Items& items) {
  out.key(name).begin_array();
  for (const auto& item : items) {
    out.begin_object();
    write_item(out, item);
    out.end_object();
  }
  out.end_array();
}

void write_open_claims(json::Writer& out, const OpenList<OpenItem>& claims) {
  out.key("open").begin_array();
  for (const OpenItem& claim : claims.items) {
    out.begin_object().member("claim_id", claim.id).member("run_seq", claim.run_seq).end_object();
  }
  out.end_array();
}

void write_open_tasks(json::Writer& out, const OpenList<OpenItem>& tasks) {
  out.key("open").begin_array();
  for (const OpenItem& task : tasks.items) {
    out.begin_object().member("run_seq", task.run_seq).member("task_id", task.id).end_object();
  }
  out.end_array();
}

void write_budgets(json::Writer& out, const RunState& state) {
  out.key("budgets").begin_object().member("exceeded", state.budgets_exceeded).key("last");
  if (state.last_budget) {
    out.begin_object();
    put(out, "budget", state.last_budget->budget);
    put_scalar(out, "limit", state.last_budget->limit);
    out.member("run_seq", state.last_budget->run_seq);
    put_scalar(out, "used", state.last_budget->used);
    out.end_object();
  } else {
    out.null();
  }
  out.end_object();
}

void write_claims(json::Writer& out, const RunState& state) {
  out.key("claims").begin_object().member("count", state.claim_count).member("dropped", state.claims_dropped);
  write_open_claims(out, state.claims);
  out.end_object();
}

void write_context(json::Writer& out, const RunState& state) {
  out.key("context").begin_object();
  put(out, "compacted_at", state.compacted_at);
  put(out, "manifest_id", state.manifest_id);
  out.key("messages").begin_object().member("count", state.message_count);
  put(out, "first_run_seq", state.first_message);
  put(out, "last_run_seq", state.last_message);
  out.end_object().end_object();
}

void write_counts(json::Writer& out, const RunState& state) {
  std::map<std::string_view, std::int64_t> counts(state.other_counts.begin(), state.other_counts.end());
  for (const TypeInfo& info : catalogue()) {
    const std::int64_t count = state.counts[static_cast<std::size_t>(info.type)];
    if (count > 0) counts.emplace(info.name, count);
  }
  out.key("counts").begin_object();
  for (const auto& [name, count] : counts) out.member(name, count);
  out.end_object();
}

void write_halt(json::Writer& out, const std::optional<HaltState>& halt) {
  out.key("halt");
  if (!halt) {
    out.null();
    return;
  }
  out.begin_object();
  put(out, "actual", halt->actual);
  out.member("attempts", halt->attempts);
  put(out, "code", halt->code);
  put(out, "expected", halt->expected);
  put(out, "pointer", halt->pointer);
  put(out, "reason", halt->reason);
  out.member("recorded_at", format_time(halt->recorded_at)).member("seq", halt->seq).end_object();
}

void write_pending(json::Writer& out, const RunState& state) {
  out.key("pending").begin_object();
  write_list(out, "approvals", state.approvals.items);
  write_list(out, "calls", state.calls.items);
  write_list(out, "children", state.children.items);
  out.member("dropped", state.pending_dropped).end_object();
}

void write_run(json::Writer& out, const RunState& state) {
  out.key("run").begin_object().key("agent");
  if (state.agent) {
    out.begin_object();
    put(out, "id", state.agent->id);
    put(out, "name", state.agent->name);
    put(out, "version", state.agent->version);
    out.end_object();
  } else {
    out.null();
  }
  put(out, "goal", state.goal);
  out.key("labels").begin_object();
  for (const auto& [name, value] : state.labels) out.raw_member(name, value);
  out.end_object();
  put(out, "last_event_at", state.last_event_at);
  put(out, "origin", state.origin);
  put(out, "outcome", state.outcome);
  out.key("parent");
  if (state.parent) {
    out.begin_object();
    put(out, "run_id", state.parent->run_id);
    out.member("run_seq", state.parent->run_seq).end_object();
  } else {
    out.null();
  }
  put(out, "run_id", state.run_id);
  put(out, "started_at", state.started_at);
  put(out, "status", state.status);
  out.end_object();
}

void write_tasks(json::Writer& out, const RunState& state) {
  out.key("tasks").begin_object().member("completed", state.tasks_completed).member("dropped", state.tasks_dropped);
  write_open_tasks(out, state.tasks);
  out.member("opened", state.tasks_opened).end_object();
}

void write_usage(json::Writer& out, const RunState& state) {
  out.key("usage").begin_object().key("cost").begin_object();
  for (const auto& [currency, sum] : state.cost) out.member(currency, sum_text(sum));
  out.end_object();
  out.member("input_tokens", state.input_tokens).member("output_tokens", state.output_tokens);
  out.member("uncounted", state.uncounted).end_object();
}

// A member that is missing or of the wrong kind is detected at the end, when the document is compared with its
// canonical form.

std::int64_t number_of(const Value& value) { return value.as_int().value_or(0); }

std::optional<Time> time_of(const Value& value) {
  const Text text = value.as_string();
  return text ? parse_time(*text) : std::nullopt;
}

Scalar scalar_text(const Value& value) {
  if (!value || value.is(Kind::null)) return std::nullopt;
  return json::canonical(value);
}

void read_item(const Value& from, OpenStep& step) {
  step = {from["step_id"].string_or(""), from["name"].as_string(), from["kind"].as_string(),
          from["parent_step_id"].as_string(), number_of(from["run_seq"])};
}

void read_item(const Value& from, PendingCall& call) {
  call = {from["call_id"].string_or(""), {}, from["name"].as_string(), number_of(from["run_seq"])};
  for (std::string_view kind : call_kinds) {
    if (from["kind"].string_or("") == kind) call.kind = kind;
  }
}

void read_item(const Value& from, PendingApproval& approval) {
  approval = {from["approval_id"].string_or(""), from["call_id"].as_string(), number_of(from["run_seq"])};
}

void read_item(const Value& from, PendingChild& child) {
  child = {from["run_id"].string_or(""), from["kind"].as_string(), from["halted"].as_bool().value_or(false),
           number_of(from["run_seq"])};
}

void read_item(const Value& from, PlanItem& item) {
  item = {from["id"].as_string(), from["text"].as_string(), from["status"].as_string()};
}

template <typename Item>
void read_list(const Value& from, std::vector<Item>& items) {
  for (Value item : from) read_item(item, items.emplace_back());
}

void read_open_items(const Value& from, std::string_view key, OpenList<OpenItem>& list) {
  for (Value item : from) list.items.push_back({item[key].string_or(""), number_of(item["run_seq"])});
}

void read_run(const Value& run, RunState& state) {
  state.run_id = run["run_id"].as_string();
  state.status = run["status"].as_string();
  state.outcome = run["outcome"].as_string();
  state.origin = run["origin"].as_string();
  state.goal = run["goal"].as_string();
  if (const Value agent = run["agent"]; agent.is(Kind::object)) {
    state.agent = AgentState{agent["name"].as_string(), agent["id"].as_string(), agent["version"].as_string()};
  }
  if (const Value parent = run["parent"]; parent.is(Kind::object)) {
    state.parent = ParentState{parent["run_id"].as_string(), number_of(parent["run_seq"])};
  }
  for (Value label : run["labels"]) state.labels.emplace(label.key(), json::canonical(label));
  state.started_at = time_of(run["started_at"]);
  state.last_event_at = time_of(run["last_event_at"]);
}

void read_context(const Value& context, RunState& state) {
  state.manifest_id = context["manifest_id"].as_string();
  state.compacted_at = context["compacted_at"].as_int();
  const Value messages = context["messages"];
  state.message_count = number_of(messages["count"]);
  state.first_message = messages["first_run_seq"].as_int();
  state.last_message = messages["last_run_seq"].as_int();
}

void read_lists(const Value& root, RunState& state) {
  read_list(root["steps"]["open"], state.steps.items);
  state.steps_done = number_of(root["steps"]["done"]);
  state.steps_dropped = number_of(root["steps"]["dropped"]);
  const Value pending = root["pending"];
  read_list(pending["calls"], state.calls.items);
  read_list(pending["approvals"], state.approvals.items);
  read_list(pending["children"], state.children.items);
  state.pending_dropped = number_of(pending["dropped"]);
  read_list(root["plan"], state.plan);
  const Value claims = root["claims"];
  read_open_items(claims["open"], "claim_id", state.claims);
  state.claim_count = number_of(claims["count"]);
  state.claims_dropped = number_of(claims["dropped"]);
  const Value tasks = root["tasks"];
  read_open_items(tasks["open"], "task_id", state.tasks);
  state.tasks_opened = number_of(tasks["opened"]);
  state.tasks_completed = number_of(tasks["completed"]);
  state.tasks_dropped = number_of(tasks["dropped"]);
}

void read_sums(const Value& root, RunState& state) {
  state.budgets_exceeded = number_of(root["budgets"]["exceeded"]);
  if (const Value last = root["budgets"]["last"]; last.is(Kind::object)) {
    state.last_budget = LastBudget{last["budget"].as_string(), scalar_text(last["limit"]), scalar_text(last["used"]),
                                   number_of(last["run_seq"])};
  }
  const Value usage = root["usage"];
  state.input_tokens = number_of(usage["input_tokens"]);
  state.output_tokens = number_of(usage["output_tokens"]);
  for (Value sum : usage["cost"]) state.cost.emplace(sum.key(), parse_sum(sum.string_or("")).value_or(0));
  state.uncounted = number_of(usage["uncounted"]);
  for (Value count : root["counts"]) {
    const std::string name = count.key();
    const Type type = type_named(name);
    if (type == Type::foreign) {
      state.other_counts.emplace(name, number_of(count));
    } else {
      state.counts[static_cast<std::size_t>(type)] = number_of(count);
    }
  }
  state.artifact_count = number_of(root["artifacts"]["count"]);
  state.artifact_bytes = number_of(root["artifacts"]["bytes"]);
  state.labels_refused = number_of(root["refused"]["labels"]);
  state.patches_refused = number_of(root["refused"]["working"]);
}

void read_halt(const Value& halt, RunState& state) {
  if (!halt.is(Kind::object)) return;
  state.halt = HaltState{halt["code"].as_string(),    halt["reason"].as_string(),
                         halt["pointer"].as_string(), halt["expected"].as_string(),
                         halt["actual"].as_string(),  number_of(halt["attempts"]),
                         number_of(halt["seq"]),      time_of(halt["recorded_at"]).value_or(Time{})};
}

}  // namespace

std::size_t labels_bytes(const std::map<std::string, std::string>& labels) {
  std::size_t bytes = labels.empty() ? 2 : 1 + labels.size();  // braces and commas
  for (const auto& [name, value] : labels) bytes += json::quote(name).size() + 1 + value.size();
  return bytes;
}

std::string write_document(const RunState& state) {
  json::Writer out;
  out.begin_object();
  out.key("artifacts")
      .begin_object()
      .member("bytes", state.artifact_bytes)
      .member("count", state.artifact_count)
      .end_object();
  out.key("at").begin_object().member("run_hash", to_hex(state.run_hash));
  out.member("run_seq", state.run_seq).member("seq", state.seq).end_object();
  write_budgets(out, state);
  write_claims(out, state);
  write_context(out, state);
  write_counts(out, state);
  write_halt(out, state.halt);
  write_pending(out, state);
  write_list(out, "plan", state.plan);
  out.key("refused")
      .begin_object()
      .member("labels", state.labels_refused)
      .member("working", state.patches_refused)
      .end_object();
  write_run(out, state);
  out.member("schema", document_schema);
  out.key("steps").begin_object().member("done", state.steps_done).member("dropped", state.steps_dropped);
  write_list(out, "open", state.steps.items);
  out.end_object();
  write_tasks(out, state);
  write_usage(out, state);
  out.raw_member("working", state.working.canonical()).end_object();
  return std::move(out).text();
}

Result<RunState> read_document(std::string_view text) {
  ASSIGN_OR_RETURN(const json::Document document, json::parse(text));
  const Value root = document.root();
  if (root["schema"].as_int() != document_schema) {
    return Error(Errc::corrupt, "not a state document of schema " + std::to_string(document_schema));
  }
  RunState state;
  state.seq = number_of(root["at"]["seq"]);
  state.run_seq = number_of(root["at"]["run_seq"]);
  if (const auto hash = hash_from_hex(root["at"]["run_hash"].string_or(""))) state.run_hash = *hash;
  read_run(root["run"], state);
  read_context(root["context"], state);
  read_lists(root, state);
  read_sums(root, state);
  read_halt(root["halt"], state);
  state.working = json::Tree(root["working"]);
  if (write_document(state) != text)
    return Error(Errc::corrupt, "the state document is not in canonical form, or lacks members");
  return state;
}

}  // namespace muniment::events
