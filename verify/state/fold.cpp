#include "verify/state/fold.hpp"

#include <algorithm>
#include <array>

#include "verify/state/value.hpp"

namespace muniment::verify {
namespace {

constexpr std::size_t list_items_max = 100;
constexpr std::size_t patch_bytes_max = 4'194'304;
constexpr std::string_view state_mime_type = "application/vnd.muniment.state+json";

constexpr std::array<std::string_view, 5> message_types{"message.added", "model.answered", "thought.recorded",
                                                        "tool.called", "tool.returned"};

void grow(std::int64_t& counter, std::int64_t by = 1) { counter = capped_sum(counter, by); }

// Builds the canonical text of an object whose members are given in the order of their names.
class ObjectText {
 public:
  ObjectText& text(std::string_view name, const Text& value) {
    start(name);
    write_text(value, out_);
    return *this;
  }
  ObjectText& number(std::string_view name, std::int64_t value) { return raw(name, std::to_string(value)); }
  ObjectText& raw(std::string_view name, std::string_view value) {
    start(name);
    out_ += value;
    return *this;
  }
  std::string done() { return std::move(out_) + '}'; }

 private:
  void start(std::string_view name) {
    if (out_.size() > 1) out_ += ',';
    write_quoted(name, out_);
    out_ += ':';
  }
  std::string out_ = "{";
};

Text keyed(std::string_view kind, const Text& id) {
  if (!id) return std::nullopt;
  return std::string(kind) + '/' + *id;
}

}  // namespace

// One function for each rule of docs/format.md (Rules by type), in the order of that table.
struct Fold::Rules {
  using Body = const json::Value&;
  using Rule = void (*)(Fold&, const FoldEvent&, Body, const std::optional<std::string>& spilled);
  struct Row {
    std::string_view type;
    bool reads_body;
    Rule rule;
  };
  static const std::array<Row, 28> table;
  static const Row* find(std::string_view type) {
    const auto row = std::find_if(table.begin(), table.end(), [type](const Row& r) { return r.type == type; });
    return row == table.end() ? nullptr : &*row;
  }

  using Spilled = const std::optional<std::string>&;

  static void run(Fold& f, const FoldEvent& e, Body b, Spilled) { f.facts_.apply(e, b); }

  static Text step_of(const FoldEvent& e) { return e.step_id ? *e.step_id : "main"; }
  static void step_started(Fold& f, const FoldEvent& e, Body b, Spilled) {
    f.open(f.steps_, f.steps_dropped_, step_of(e),
           ObjectText()
               .text("kind", text_of(b, "kind"))
               .text("name", text_of(b, "name"))
               .text("parent_step_id", text_of(b, "parent_step_id"))
               .number("run_seq", e.run_seq)
               .text("step_id", step_of(e))
               .done());
  }
  static void step_ended(Fold& f, const FoldEvent& e, Body, Spilled) {
    close(f.steps_, step_of(e));
    grow(f.steps_done_);
  }

  static void open_call(Fold& f, const FoldEvent& e, Body b, std::string_view kind, const Text& name) {
    const Text id = text_of(b, "call_id");
    f.open(f.calls_, f.pending_dropped_, keyed(kind, id),
           ObjectText()
               .text("call_id", id)
               .text("kind", std::string(kind))
               .text("name", name)
               .number("run_seq", e.run_seq)
               .done());
  }
  static void close_call(Fold& f, Body b, std::string_view kind) {
    close(f.calls_, keyed(kind, text_of(b, "call_id")));
  }
  static void model_called(Fold& f, const FoldEvent& e, Body b, Spilled s) {
    open_call(f, e, b, "model", text_of(b, "model"));
    context_built(f, e, b, s);
  }
  static void model_answered(Fold& f, const FoldEvent&, Body b, Spilled) {
    close_call(f, b, "model");
    const json::Value usage = b["usage"];
    if (!usage.is(json::Kind::object)) return;
    grow(f.input_tokens_, natural_of(usage, "input_tokens"));
    grow(f.output_tokens_, natural_of(usage, "output_tokens"));
    const json::Value cost = usage["cost"];
    if (cost.kind() != json::Kind::null && !f.costs_.add(cost)) grow(f.uncounted_);
  }
  static void tool_called(Fold& f, const FoldEvent& e, Body b, Spilled) {
    open_call(f, e, b, "tool", text_of(b, "name"));
  }
  static void tool_returned(Fold& f, const FoldEvent&, Body b, Spilled) { close_call(f, b, "tool"); }
  static void command_started(Fold& f, const FoldEvent& e, Body b, Spilled) {
    const json::Value argv = b["argv"];
    Text name;
    if (argv.is(json::Kind::array) && argv.size() > 0) name = (*argv.begin()).as_string();
    open_call(f, e, b, "command", name);
  }
  static void command_ended(Fold& f, const FoldEvent&, Body b, Spilled) { close_call(f, b, "command"); }

  static void approval_requested(Fold& f, const FoldEvent& e, Body b, Spilled) {
    const Text id = text_of(b, "approval_id");
    f.open(f.approvals_, f.pending_dropped_, id,
           ObjectText()
               .text("approval_id", id)
               .text("call_id", text_of(b, "call_id"))
               .number("run_seq", e.run_seq)
               .done());
  }
  static void approval_decided(Fold& f, const FoldEvent&, Body b, Spilled) {
    close(f.approvals_, text_of(b, "approval_id"));
  }
  static void child_started(Fold& f, const FoldEvent& e, Body b, Spilled) {
    const Text id = text_of(b, "run_id");
    std::string after =
        ObjectText().text("kind", text_of(b, "kind")).text("run_id", id).number("run_seq", e.run_seq).done();
    after[0] = ',';  // it continues the text after "halted"
    f.open(f.children_, f.pending_dropped_, id, "{\"halted\":", std::move(after));
  }
  static void child_ended(Fold& f, const FoldEvent&, Body b, Spilled) { close(f.children_, text_of(b, "run_id")); }
  static void child_halted(Fold& f, const FoldEvent&, Body b, Spilled) {
    const Text id = text_of(b, "run_id");
    for (Item& item : f.children_) {
      if (id && item.key == *id) item.halted = true;
    }
  }

  static void context_built(Fold& f, const FoldEvent&, Body b, Spilled) {
    if (Text id = text_of(b, "manifest_id")) f.manifest_id_ = std::move(id);
  }
  static void context_compacted(Fold& f, const FoldEvent& e, Body b, Spilled s) {
    context_built(f, e, b, s);
    f.messages_ = 0;
    f.first_message_ = f.last_message_ = std::nullopt;
    f.compacted_at_ = e.run_seq;
  }
  static void plan_updated(Fold& f, const FoldEvent&, Body b, Spilled) {
    f.plan_ = "[";
    if (b["items"].is(json::Kind::array)) {
      for (const json::Value item : b["items"]) {
        if (!item.is(json::Kind::object)) continue;
        if (f.plan_.size() > 1) f.plan_ += ',';
        f.plan_ += ObjectText()
                       .text("id", text_of(item, "id"))
                       .text("status", text_of(item, "status"))
                       .text("text", text_of(item, "text"))
                       .done();
      }
    }
    f.plan_ += ']';
  }

  static void claim_recorded(Fold& f, const FoldEvent& e, Body b, Spilled) {
    const Text id = text_of(b, "claim_id");
    f.open(f.claims_, f.claims_dropped_, id, ObjectText().text("claim_id", id).number("run_seq", e.run_seq).done());
    grow(f.claims_count_);
  }
  static void claim_decided(Fold& f, const FoldEvent&, Body b, Spilled) { close(f.claims_, text_of(b, "claim_id")); }
  static void task_opened(Fold& f, const FoldEvent& e, Body b, Spilled) {
    const Text id = text_of(b, "task_id");
    f.open(f.tasks_, f.tasks_dropped_, id, ObjectText().number("run_seq", e.run_seq).text("task_id", id).done());
    grow(f.tasks_opened_);
  }
  static void task_completed(Fold& f, const FoldEvent&, Body b, Spilled) {
    close(f.tasks_, text_of(b, "task_id"));
    grow(f.tasks_completed_);
  }
  static void budget_exceeded(Fold& f, const FoldEvent& e, Body b, Spilled) {
    grow(f.budgets_exceeded_);
    f.last_budget_ = ObjectText()
                         .text("budget", text_of(b, "budget"))
                         .raw("limit", scalar_of(b["limit"]).value_or("null"))
                         .number("run_seq", e.run_seq)
                         .raw("used", scalar_of(b["used"]).value_or("null"))
                         .done();
  }
  static void artifact_stored(Fold& f, const FoldEvent&, Body b, Spilled) {
    grow(f.artifacts_);
    grow(f.artifact_bytes_, natural_of(b, "size_bytes"));
  }

  static void state_patched(Fold& f, const FoldEvent&, Body b, Spilled spilled) {
    if (!patch(f, b, spilled)) grow(f.working_refused_);
  }
  static bool patch(Fold& f, Body b, Spilled spilled) {
    const Text format = text_of(b, "format");
    if (b["patch"]) return apply_patch(f, format, b["patch"]);
    if (!spilled || spilled->size() > patch_bytes_max) return false;
    const auto document = json::parse(*spilled);
    return document && apply_patch(f, format, document->root());
  }
  static bool apply_patch(Fold& f, const Text& format, const json::Value& patch) {
    if (format == "merge") return f.working_.apply_merge(patch);
    return format == "json_patch" && f.working_.apply_json_patch(patch);
  }
};

const std::array<Fold::Rules::Row, 28> Fold::Rules::table{{
    {"run.started", true, run},
    {"run.ended", true, run},
    {"run.halted", true, run},
    {"run.resumed", false, run},
    {"run.annotated", true, run},
    {"step.started", true, step_started},
    {"step.ended", false, step_ended},
    {"model.called", true, model_called},
    {"model.answered", true, model_answered},
    {"tool.called", true, tool_called},
    {"tool.returned", true, tool_returned},
    {"command.started", true, command_started},
    {"command.ended", true, command_ended},
    {"approval.requested", true, approval_requested},
    {"approval.decided", true, approval_decided},
    {"child.started", true, child_started},
    {"child.ended", true, child_ended},
    {"child.halted", true, child_halted},
    {"context.built", true, context_built},
    {"context.compacted", true, context_compacted},
    {"plan.updated", true, plan_updated},
    {"claim.recorded", true, claim_recorded},
    {"claim.decided", true, claim_decided},
    {"task.opened", true, task_opened},
    {"task.completed", true, task_completed},
    {"budget.exceeded", true, budget_exceeded},
    {"artifact.stored", true, artifact_stored},
    {"state.patched", true, state_patched},
}};

std::vector<std::string_view> Fold::types_with_bodies() {
  std::vector<std::string_view> types;
  for (const Rules::Row& row : Rules::table) {
    if (row.reads_body) types.push_back(row.type);
  }
  return types;
}

std::string spilled_patch_of(const FoldEvent& event) {
  if (event.type != "state.patched" || !event.body) return "";
  const auto document = json::parse(*event.body);
  if (!document || document->root()["patch"]) return "";
  return document->root()["ref"]["artifact_id"].string_or("");
}

void Fold::apply(const FoldEvent& event, const std::optional<std::string>& spilled) {
  const Rules::Row* const row = Rules::find(event.type);
  if (event.seq <= seq_ || event.type == "snapshot.taken") return;
  const bool reads = row != nullptr && row->reads_body && event.body;
  const auto document = json::parse(reads ? std::string_view(*event.body) : std::string_view("{}"));
  const json::Value body = document ? document->root() : json::Value();
  if (event.type == "artifact.stored" && text_of(body, "mime_type") == state_mime_type) return;
  seq_ = event.seq;
  run_seq_ = event.run_seq;
  run_hash_ = event.run_hash;
  last_event_at_ = format_time(event.recorded_at);
  const std::string_view counted = event.type.starts_with("x.") ? "x" : event.type;
  if (const auto counter = counts_.find(counted); counter != counts_.end()) {
    grow(counter->second);
  } else {
    counts_.emplace(counted, 1);
  }
  if (std::find(message_types.begin(), message_types.end(), event.type) != message_types.end()) {
    grow(messages_);
    last_message_ = event.run_seq;
    if (!first_message_) first_message_ = event.run_seq;
  }
  if (row != nullptr) row->rule(*this, event, body, spilled);
}

void Fold::open(Items& items, std::int64_t& dropped, const Text& key, std::string before, std::string after) {
  if (!key) return;
  close(items, key);
  items.push_back({*key, std::move(before), std::move(after)});
  if (items.size() <= list_items_max) return;
  items.pop_front();
  grow(dropped);
}

void Fold::close(Items& items, const Text& key) {
  if (!key) return;
  const auto item = std::find_if(items.begin(), items.end(), [&](const Item& i) { return i.key == *key; });
  if (item != items.end()) items.erase(item);
}

std::string Fold::text_of_items(const Items& items) {
  std::string out = "[";
  for (const Item& item : items) {
    if (out.size() > 1) out += ',';
    out += item.before;
    if (!item.after.empty()) out += (item.halted ? "true" : "false") + item.after;
  }
  return out + ']';
}

std::string Fold::run_text() const {
  ObjectText run;
  run.raw("agent", facts_.has_agent ? ObjectText()
                                          .text("id", facts_.agent_id)
                                          .text("name", facts_.agent_name)
                                          .text("version", facts_.agent_version)
                                          .done()
                                    : "null");
  run.text("goal", facts_.goal).raw("labels", facts_.labels_text()).text("last_event_at", last_event_at_);
  run.text("origin", facts_.origin).text("outcome", facts_.outcome);
  run.raw("parent",
          facts_.has_parent
              ? ObjectText().text("run_id", facts_.parent_run_id).number("run_seq", facts_.parent_run_seq).done()
              : "null");
  run.text("run_id", seq_ < 0 ? Text() : Text(run_id_)).text("started_at", facts_.started_at);
  return run.text("status", facts_.status).done();
}

std::string Fold::context_text() const {
  const auto position = [](const std::optional<std::int64_t>& p) { return p ? std::to_string(*p) : "null"; };
  const std::string messages = ObjectText()
                                   .number("count", messages_)
                                   .raw("first_run_seq", position(first_message_))
                                   .raw("last_run_seq", position(last_message_))
                                   .done();
  return ObjectText()
      .raw("compacted_at", position(compacted_at_))
      .text("manifest_id", manifest_id_)
      .raw("messages", messages)
      .done();
}

std::string Fold::usage_text() const {
  std::string cost;
  costs_.write(cost);
  return ObjectText()
      .raw("cost", cost)
      .number("input_tokens", input_tokens_)
      .number("output_tokens", output_tokens_)
      .number("uncounted", uncounted_)
      .done();
}

std::string Fold::document() const {
  ObjectText counts;
  for (const auto& [type, count] : counts_) counts.number(type, count);
  return ObjectText()
      .raw("artifacts", ObjectText().number("bytes", artifact_bytes_).number("count", artifacts_).done())
      .raw("at", ObjectText().text("run_hash", run_hash_).number("run_seq", run_seq_).number("seq", seq_).done())
      .raw("budgets", ObjectText().number("exceeded", budgets_exceeded_).raw("last", last_budget_).done())
      .raw("claims", ObjectText()
                         .number("count", claims_count_)
                         .number("dropped", claims_dropped_)
                         .raw("open", text_of_items(claims_))
                         .done())
      .raw("context", context_text())
      .raw("counts", counts.done())
      .raw("halt", facts_.halt.value_or("null"))
      .raw("pending", ObjectText()
                          .raw("approvals", text_of_items(approvals_))
                          .raw("calls", text_of_items(calls_))
                          .raw("children", text_of_items(children_))
                          .number("dropped", pending_dropped_)
                          .done())
      .raw("plan", plan_)
      .raw("refused", ObjectText().number("labels", facts_.labels_refused).number("working", working_refused_).done())
      .raw("run", run_text())
      .number("schema", 1)
      .raw("steps", ObjectText()
                        .number("done", steps_done_)
                        .number("dropped", steps_dropped_)
                        .raw("open", text_of_items(steps_))
                        .done())
      .raw("tasks", ObjectText()
                        .number("completed", tasks_completed_)
                        .number("dropped", tasks_dropped_)
                        .raw("open", text_of_items(tasks_))
                        .number("opened", tasks_opened_)
                        .done())
      .raw("usage", usage_text())
      .raw("working", working_.value().canonical())
      .done();
}

}  // namespace muniment::verify
