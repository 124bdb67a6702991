#include "adapters/import/otlp/otlp_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <set>
#include <unordered_set>
#include <utility>

#include "adapters/import/otlp/otlp_conventional.hpp"
#include "adapters/import/readable.hpp"
#include "base/crypto/sha256.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t otlp_name_bytes_max = 256;
constexpr std::size_t otlp_label_bytes_max = 256;
// Spans searched for the goal, which is the first text of the user.
constexpr std::size_t head_edges_max = 64;

bool is_trace_id(std::string_view id) { return id.size() == 32; }

}  // namespace

OtlpTrace::OtlpTrace(const OtlpFile& file, const OtlpTraceItems& trace)
    : file_(file), trace_(trace), items_(file.items().data() + trace.first), order_(otlp_order(items_, trace.count)) {
  plan();
}

// If no span is a call or an agent, the content of a single root is the run's.
void OtlpTrace::plan_kinds() {
  std::uint32_t root = none;
  bool has_calls = false, has_several_roots = false;
  for (std::uint32_t item = 0; item < trace_.count; ++item) kinds_.push_back(items_[item].kind);
  for (std::uint32_t item = 0; item < trace_.count; ++item) {
    const std::uint32_t parent = order_.parents[item];
    has_calls = has_calls || kind(item) == OtlpKind::model || kind(item) == OtlpKind::agent || items_[item].is_details;
    if (kind(item) != OtlpKind::log && parent == none) {
      has_several_roots = has_several_roots || root != none;
      root = item;
    }
    if (!items_[item].is_details || parent == none || kind(parent) != OtlpKind::model) continue;
    details_[parent].push_back(item);
    moved_[item];
  }
  if (!has_calls && !has_several_roots && root != none && items_[root].has_text) kinds_[root] = OtlpKind::agent;
}

void OtlpTrace::plan() {
  const std::size_t count = trace_.count;
  plan_kinds();
  has_children_.assign(count, false);
  has_twin_.assign(count, false);
  run_of_.assign(count, 0);
  step_of_.assign(count, none);
  runs_.emplace_back();
  std::unordered_set<std::uint64_t> ids;
  std::vector<std::uint32_t> outermost;
  std::vector<bool> in_agent(count, false);
  for (const std::uint32_t item : order_.top_down) {
    const std::uint32_t parent = order_.parents[item];
    const bool is_agent = kind(item) == OtlpKind::agent;
    if (parent != none) has_children_[parent] = has_children_[parent] || kind(item) != OtlpKind::log;
    const bool above = parent != none && in_agent[parent];
    if (is_agent && !above) outermost.push_back(item);
    in_agent[item] = above || is_agent;
    has_twin_[item] = kind(item) != OtlpKind::log && !ids.insert(items_[item].id).second;
    if (scope_places_.emplace(items_[item].scope, scopes_.size()).second) scopes_.push_back(items_[item].scope);
  }
  if (outermost.size() == 1) main_agent_ = outermost[0];
  for (const std::uint32_t item : order_.top_down) {
    const std::uint32_t parent = order_.parents[item];
    if (parent != none) run_of_[item] = run_of_[parent];
    if (starts_run(item)) {
      run_of_[item] = static_cast<std::uint32_t>(runs_.size());
      runs_.emplace_back().key = name_of(item);
    } else if (parent != none) {
      step_of_[item] = is_step(parent) ? parent : step_of_[parent];
    }
  }
}

std::string OtlpTrace::name_of(std::uint32_t item) const {
  if (kind(item) == OtlpKind::log) return fmt::format("log-{}", item);
  std::string name = fmt::format("{:016x}", items_[item].id);
  if (has_twin_[item]) name += fmt::format(".{}", item);
  return name;
}

Result<std::string> OtlpTrace::sha256_of_all() const {
  Sha256 hash;
  hash.update(trace_.id);
  for (const std::uint32_t index : scopes_) {
    const OtlpScope& scope = file_.scope(index);
    ASSIGN_OR_RETURN(const std::string resource, file_.read(scope.resource_offset, scope.resource_length));
    ASSIGN_OR_RETURN(const std::string inside, file_.read(scope.scope_offset, scope.scope_length));
    for (const std::string_view part :
         {std::string_view(resource), std::string_view(inside), std::string_view(scope.others)}) {
      hash.update("\n");
      hash.update(part);
    }
  }
  for (std::size_t i = 0; i < trace_.count; ++i) {
    ASSIGN_OR_RETURN(const std::string text, file_.text(items_[i]));
    hash.update("\n");
    hash.update(text);
  }
  return to_hex(hash.finish());
}

// The start and end of an item are often adjacent, so its contents are kept for the second one.
Result<json::Value> OtlpTrace::load(std::uint32_t item) {
  if (loaded_ != item) {
    loaded_ = none;
    document_.reset();
    ASSIGN_OR_RETURN(text_, file_.text(items_[item]));
    ASSIGN_OR_RETURN(json::Document document, json::parse(text_));
    document_ = std::move(document);
    RETURN_IF_ERROR(rewrite_loaded(item));
    loaded_ = item;
  }
  return document_->root();
}

Status OtlpTrace::rewrite_loaded(std::uint32_t item) {
  const OtlpKind as = is_lone_call(item) ? OtlpKind::model : kind(item);
  if (as == OtlpKind::log) return success();
  const auto logs = details_.find(item);
  std::deque<std::string> texts;
  std::deque<json::Document> documents;
  std::vector<OtlpDetails> details;
  for (const std::uint32_t log : logs == details_.end() ? std::vector<std::uint32_t>() : logs->second) {
    ASSIGN_OR_RETURN(std::string text, file_.text(items_[log]));
    texts.push_back(std::move(text));
    ASSIGN_OR_RETURN(json::Document document, json::parse(std::string_view(texts.back())));
    documents.push_back(std::move(document));
    details.push_back({documents.back().root()["attributes"]});
  }
  auto rewritten = otlp_conventional(document_->root(), as, details);
  for (std::size_t i = 0; i < details.size(); ++i) moved_[logs->second[i]] = std::move(details[i].moved);
  if (!rewritten) return success();
  text_ = std::move(*rewritten);
  ASSIGN_OR_RETURN(json::Document document, json::parse(std::string_view(text_)));
  document_ = std::move(document);
  return success();
}

Result<ImportedRun> OtlpTrace::head() {
  ImportedRun run;
  run.external_id = trace_.id;
  bool failed = false, has_root = false, went_well = true;
  for (const std::uint32_t item : order_.top_down) {
    if (order_.parents[item] != none || kind(item) == OtlpKind::log) continue;
    ASSIGN_OR_RETURN(const json::Value span, load(item));
    failed = failed || is_error(span);
    if (items_[item].parent != 0) continue;
    has_root = true;
    went_well = went_well && is_ok(span);
  }
  run.end.outcome = failed ? "failure" : has_root && went_well ? "success" : unknown_end;
  run.end.summary = failed                  ? "the trace's root has an error"
                    : has_root && went_well ? "the trace's root is marked as ok"
                    : has_root              ? "the trace's root has no error"
                                            : "the root of the trace is not in the file";
  std::string conversation;
  std::size_t looked = 0;
  for (const OtlpOrder::Edge& edge : order_.edges) {
    if (edge.end || ++looked > head_edges_max) continue;
    ASSIGN_OR_RETURN(const json::Value span, load(edge.item));
    const OtlpAttributes attributes(span["attributes"]);
    if (run.goal.empty()) run.goal = goal_of(span);
    if (conversation.empty()) conversation = attributes.text("gen_ai.conversation.id");
  }
  for (const std::uint32_t item : order_.top_down) {
    if (!run.goal.empty() || order_.parents[item] != none || !items_[item].has_text) continue;
    ASSIGN_OR_RETURN(const json::Value span, load(item));
    run.goal = otlp_input_text(OtlpAttributes(span["attributes"]));
  }
  if (main_agent_ != none) {
    ASSIGN_OR_RETURN(const json::Value span, load(main_agent_));
    run.agent = OtlpAttributes(span["attributes"]).text("gen_ai.agent.name");
  }
  if (!scopes_.empty()) {
    const OtlpScope& scope = file_.scope(scopes_.front());
    ASSIGN_OR_RETURN(const std::string text, file_.read(scope.resource_offset, scope.resource_length));
    const auto resource = json::parse(text);
    const std::string service =
        resource ? OtlpAttributes(resource->root()["attributes"]).text("service.name") : std::string();
    if (run.agent.empty()) run.agent = service;
    if (!service.empty()) run.labels.emplace_back("service", preview(service, otlp_label_bytes_max));
  }
  if (!conversation.empty()) run.labels.emplace_back("conversation_id", preview(conversation, otlp_label_bytes_max));
  return run;
}

// Requests of the trace with characters that were replaced.
Status OtlpTrace::add_repairs() {
  std::set<std::uint32_t> requests;
  for (std::size_t i = 0; i < trace_.count; ++i) {
    if (items_[i].repair > 0) requests.insert(items_[i].repair - 1);
  }
  for (const std::uint32_t request : requests) {
    const OtlpRepair& repair = file_.repairs()[request];
    ASSIGN_OR_RETURN(const std::string bytes, file_.read_bytes(repair.offset, repair.length));
    RunAction action;
    action.event = repaired_event(fmt::format("repaired-{}", repair.line), otlp_format,
                                  static_cast<std::int64_t>(repair.line), repair.replaced, bytes);
    actions_.push_back(std::move(action));
  }
  return success();
}

Status OtlpTrace::each(const std::function<Status(std::vector<RunAction>&)>& take) {
  RETURN_IF_ERROR(add_repairs());
  for (std::size_t i = 0; i < scopes_.size(); ++i) {
    add_resource(i);
    RETURN_IF_ERROR(take(actions_));
  }
  for (const OtlpOrder::Edge& edge : order_.edges) {
    RETURN_IF_ERROR(load(edge.item));
    edge.end ? end(edge.item) : begin(edge.item);
    RETURN_IF_ERROR(take(actions_));
  }
  return success();
}

void OtlpTrace::begin(std::uint32_t item) {
  switch (kind(item)) {
    case OtlpKind::agent: return begin_agent(item);
    case OtlpKind::model: return begin_model(item);
    case OtlpKind::tool: return begin_tool(item);
    case OtlpKind::log: return add_log(item);
    case OtlpKind::other: return begin_other(item);
  }
}

void OtlpTrace::end(std::uint32_t item) {
  add_span_events(item, false);
  switch (kind(item)) {
    case OtlpKind::agent: return end_agent(item);
    case OtlpKind::model: return end_model(item);
    case OtlpKind::tool: return end_tool(item);
    case OtlpKind::log: return;
    case OtlpKind::other: return end_other(item);
  }
}

void OtlpTrace::emit(std::uint32_t item, std::string_view what, std::string type, std::string body,
                     std::string occurred_at) {
  RunAction action;
  action.child = run_of(item).key;
  std::string step = step_of_[item] == none ? std::string() : "span-" + name_of(step_of_[item]);
  action.event = {fmt::format("{}/{}", item, what), std::move(type), std::move(step), std::move(body),
                  std::move(occurred_at)};
  actions_.push_back(std::move(action));
}

// Returns whether the status is explicitly ok, which instrumentations set only for a successful operation.
bool OtlpTrace::is_ok(const json::Value& span) {
  const json::Value code = span["status"]["code"];
  return code.as_int() == 1 || code.string_or("") == "STATUS_CODE_OK";
}

bool OtlpTrace::is_error(const json::Value& span) {
  const json::Value code = span["status"]["code"];
  return code.as_int() == 2 || code.string_or("") == "STATUS_CODE_ERROR";
}

std::string_view OtlpTrace::status_of(std::uint32_t item, const json::Value& span,
                                      const OtlpAttributes& attributes) const {
  const std::string type = attributes.text("error.type");
  if (is_error(span) || !type.empty())
    return type == "timeout" ? "timeout" : type == "cancelled" ? "cancelled" : "error";
  return is_ok(span) || items_[item].end_ns != 0 || kind(item) == OtlpKind::log ? "ok" : unknown_end;
}

std::string OtlpTrace::start_time(std::uint32_t item) const {
  const std::uint64_t nanos = items_[item].start_ns;
  return nanos == 0 ? std::string() : otlp_time(nanos);
}

std::string OtlpTrace::end_time(std::uint32_t item) const {
  const std::uint64_t nanos = kind(item) == OtlpKind::log ? items_[item].start_ns : items_[item].end_ns;
  return nanos == 0 ? std::string() : otlp_time(nanos);
}

// Writes a span without the members that other fields hold. Its times are kept, since they are more precise.
std::string OtlpTrace::rest_of(const json::Value& span, const Placed& placed) const {
  json::Writer rest;
  rest.begin_object();
  std::vector<std::string_view> left = placed;  // of two attributes with the same name, only the first is placed
  for (const json::Value member : span) {
    const std::string key = member.key();
    const bool is_id = (key == "traceId" && member.string_or("") == otlp_id(member, 16)) ||
                       ((key == "spanId" || key == "parentSpanId") && member.string_or("") == otlp_id(member, 8));
    const bool is_list = member.is(json::Kind::array);
    if (member.is(json::Kind::null) || is_id || (key == "events" && is_list)) continue;
    if (key != "attributes" || !is_list) {
      write_value(rest.key(key), member);
      continue;
    }
    bool any = false;
    for (const json::Value pair : member) {
      const auto place = std::find(left.begin(), left.end(), pair["key"].string_or(""));
      if (place != left.end() && pair.size() == 2) {
        left.erase(place);
        continue;
      }
      if (!std::exchange(any, true)) rest.key(key).begin_array();
      write_value(rest, pair);
    }
    if (any) rest.end_array();
  }
  return std::move(rest.end_object()).text();
}

// Writes the position of the event in the trace and the remaining members of its span.
void OtlpTrace::write_place(json::Writer& body, std::uint32_t item, const json::Value& span,
                            const Placed& placed) const {
  const std::string id = otlp_id(span["spanId"], 8), parent = otlp_id(span["parentSpanId"], 8);
  if (is_trace_id(trace_.id) && !id.empty()) {
    body.key("otel").begin_object().member("trace_id", trace_.id).member("span_id", id);
    if (!parent.empty()) body.member("parent_span_id", parent);
    body.end_object();
  }
  if (scopes_.size() > 1) {
    body.member("x_resource", scope_places_.at(items_[item].scope));
  }
  body.raw_member("x_source", rest_of(span, placed));
}

// Writes the error and the duration, or a note about implausible times.
void OtlpTrace::write_outcome(json::Writer& body, std::uint32_t item, const json::Value& span,
                              const OtlpAttributes& attributes) const {
  const std::string type = attributes.text("error.type");
  if (is_error(span) || !type.empty()) {
    body.key("error").begin_object();
    if (!type.empty()) body.member("error_type", name_or(type, "error"));
    body.member("message", span["status"]["message"].string_or(type)).end_object();
  }
  const OtlpItem& times = items_[item];
  if (kind(item) == OtlpKind::log) return;  // a record has no duration
  if (times.start_ns == 0 || times.end_ns == 0) {
    body.member("x_clock", "the span has no start or end time");
  } else if (times.end_ns < times.start_ns) {
    body.member("x_clock", "the span ends before it begins");
  } else {
    body.member("duration_us", static_cast<std::int64_t>((times.end_ns - times.start_ns) / 1'000));
  }
}

// Returns the id in the attribute if it is unique in its run, otherwise the id of the span.
std::string OtlpTrace::new_call_id(std::uint32_t item, const OtlpAttributes& attributes, std::string_view key,
                                   Placed& placed) {
  constexpr std::size_t room_for_more = 16;  // "~" and a number
  std::string id = attributes.text(key);
  const bool fits = !id.empty() && id.size() + room_for_more <= otlp_name_bytes_max;
  std::set<std::string>& used = run_of(item).call_ids;
  if (!fits) {
    id = name_of(item);
  } else if (!used.contains(id)) {
    placed.push_back(key);
  }
  if (!used.insert(id).second) used.insert(id += fmt::format("~{}", item));
  return id;
}

void OtlpTrace::add_resource(std::size_t index) {
  const OtlpScope& scope = file_.scope(scopes_[index]);
  json::Writer body;
  body.begin_object().member("index", index).member("conventions", otlp_conventions);
  const std::pair<const char*, Result<std::string>> parts[] = {
      {"resource", file_.read(scope.resource_offset, scope.resource_length)},
      {"scope", file_.read(scope.scope_offset, scope.scope_length)}};
  for (const auto& [name, text] : parts) {
    const auto document = json::parse(text ? std::string_view(*text) : std::string_view());
    if (document) write_value(body.key(name), document->root());
  }
  body.raw_member("others", scope.others).end_object();
  RunAction action;
  action.event = {fmt::format("resource-{}", index), "x.otlp.resource", {}, std::move(body).text(), {}};
  actions_.push_back(std::move(action));
}

void OtlpTrace::begin_agent(std::uint32_t item) {
  const json::Value span = document_->root();
  const OtlpAttributes attributes(span["attributes"]);
  if (starts_run(item)) {
    const std::uint32_t parent = order_.parents[item];
    RunAction action;
    action.kind = RunAction::Kind::start_child;
    action.child = run_of(item).key;
    action.parent = parent == none ? std::string() : run_of(parent).key;
    action.agent = attributes.text("gen_ai.agent.name");
    action.goal = goal_of(span);
    if (parent != none && calls_.contains(parent) && kind(parent) == OtlpKind::tool)
      action.call_id = calls_[parent].call_id;
    actions_.push_back(std::move(action));
  }
  Placed placed;
  std::vector<RunAction> started = std::exchange(actions_, {});
  add_messages(item, attributes, "input", start_time(item), placed);
  std::vector<RunAction> messages = std::exchange(actions_, std::move(started));
  json::Writer body;
  write_place(body.begin_object(), item, span, placed);
  emit(item, "agent", "x.otlp.span", std::move(body.end_object()).text(), start_time(item));
  std::move(messages.begin(), messages.end(), std::back_inserter(actions_));
  add_span_events(item, true);
}

void OtlpTrace::end_agent(std::uint32_t item) {
  const json::Value span = document_->root();
  const OtlpAttributes attributes(span["attributes"]);
  add_message_list(item, attributes.find(otlp_output_messages), "assistant", "output", end_time(item));
  add_error(item);
  if (!starts_run(item)) return;
  RunAction action;
  action.kind = RunAction::Kind::end_child;
  action.child = run_of(item).key;
  action.outcome = is_error(span) ? "failure" : is_ok(span) ? "success" : unknown_end;
  action.summary = is_error(span) ? "the agent's span has an error"
                   : is_ok(span)  ? "the agent's span is marked as ok"
                                  : "the agent's span has no error";
  actions_.push_back(std::move(action));
  Run ended;
  ended.key = run_of(item).key;
  run_of(item) = std::move(ended);  // the run gets no further events
}

void OtlpTrace::begin_other(std::uint32_t item) {
  const json::Value span = document_->root();
  if (is_step(item)) {
    json::Writer step;
    step.begin_object().member("name", name_or(span["name"].string_or(""), "span")).member("kind", "node");
    if (step_of_[item] != none) step.member("parent_step_id", "span-" + name_of(step_of_[item]));
    emit(item, "step", "step.started", std::move(step.end_object()).text(), start_time(item));
    actions_.back().event.step_id = "span-" + name_of(item);
  }
  json::Writer body;
  write_place(body.begin_object(), item, span, {});
  emit(item, "span", "x.otlp.span", std::move(body.end_object()).text(), start_time(item));
  add_span_events(item, true);
}

void OtlpTrace::end_other(std::uint32_t item) {
  const json::Value span = document_->root();
  add_error(item);
  if (!is_step(item)) return;
  json::Writer body;
  body.begin_object().member("status", status_of(item, span, OtlpAttributes(span["attributes"])));
  write_outcome(body, item, span, OtlpAttributes(span["attributes"]));
  emit(item, "step-end", "step.ended", std::move(body.end_object()).text(), end_time(item));
  actions_.back().event.step_id = "span-" + name_of(item);
}

}  // namespace muniment::cli
