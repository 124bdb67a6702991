#include "store/tables/report_fold.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "base/json/json.hpp"
#include "events/catalogue.hpp"

namespace muniment::store {
namespace {

using json::Value;

constexpr std::size_t name_bytes_max = 1'024;  // limit of each name and key in the table
constexpr std::size_t currency_bytes_max = 64;
// A larger value is not a valid token count. The sum of a batch fits into 64 bits.
constexpr std::int64_t natural_max = 1'000'000'000'000'000;
constexpr std::string_view several_currencies = "mixed";

// The types that begin and end a span.
struct SpanType {
  std::string_view type;
  std::string_view kind;
  std::string_view key;  // member of the body; empty: the event's step_id
  bool begins;
};
constexpr std::array<SpanType, 10> span_types = {{
    {"model.called", "model", "call_id", true},
    {"model.answered", "model", "call_id", false},
    {"tool.called", "tool", "call_id", true},
    {"tool.returned", "tool", "call_id", false},
    {"step.started", "step", "", true},
    {"step.ended", "step", "", false},
    {"command.started", "command", "call_id", true},
    {"command.ended", "command", "call_id", false},
    {"approval.requested", "approval", "approval_id", true},
    {"approval.decided", "approval", "approval_id", false},
}};

// Types that views list individually.
bool is_placed(std::string_view type) {
  const events::TypeInfo* const info = events::find_type(type);
  return info != nullptr && info->has_table("report_place");
}

const SpanType* span_type_of(std::string_view type) {
  const auto found = std::ranges::find(span_types, type, &SpanType::type);
  return found == span_types.end() ? nullptr : &*found;
}

// A value that the table cannot hold is omitted, so that it does not stop the follower.
std::optional<std::string> name_of(const Value& value) {
  auto text = value.as_string();
  return text && !text->empty() && text->size() <= name_bytes_max ? text : std::nullopt;
}

std::optional<std::int64_t> natural_of(const Value& value) {
  const auto number = value.as_int();
  return number && *number >= 0 && *number <= natural_max ? number : std::nullopt;
}

std::optional<std::string> key_of(const events::Event& event, const SpanType& type, const Value& body) {
  if (!type.key.empty()) return name_of(body[type.key]);
  return event.step_id.value_or("main");
}

// Returns the time of the client or the source. For events that were not imported, the daemon's clock is the fallback.
std::optional<Time> moment_of(const events::Event& event) {
  if (event.occurred_at || event.origin == events::Origin::imported) return event.occurred_at;
  return event.recorded_at;
}

SpanRow beginning_of(const events::Event& event, const SpanType& type, std::string key, const Value& body) {
  SpanRow row;
  row.kind = type.kind;
  row.seq = event.seq;
  row.run_no = event.run_no;
  row.key = std::move(key);
  row.step_id = event.step_id;
  row.origin = event.origin;
  row.began = type.begins;
  if (!type.begins) return row;
  row.began_at = moment_of(event);
  row.attempt = body["attempt"].as_int();
  if (type.kind == "model") {
    row.name = name_of(body["model"]);
    row.sort = name_of(body["operation"]);
    row.via = name_of(body["provider"]);
  } else if (type.kind == "tool") {
    row.name = name_of(body["name"]);
    row.sort = name_of(body["kind"]);
    row.via = name_of(body["server"]);
  } else if (type.kind == "step") {
    row.name = name_of(body["name"]);
    row.sort = name_of(body["kind"]);
    row.via = name_of(body["parent_step_id"]);
  }
  return row;
}

void take_usage(SpanEnd& end, const Value& usage) {
  end.input_tokens = natural_of(usage["input_tokens"]);
  end.output_tokens = natural_of(usage["output_tokens"]);
  end.cached_input_tokens = natural_of(usage["cached_input_tokens"]);
  end.cache_write_tokens = natural_of(usage["cache_write_tokens"]);
  end.reasoning_tokens = natural_of(usage["reasoning_tokens"]);
  const Value amount = usage["cost"]["amount"];
  auto currency = usage["cost"]["currency"].as_string();
  if (!currency || currency->empty() || currency->size() > currency_bytes_max) return;
  end.cost = events::parse_amount(amount.is(json::Kind::string) ? *amount.as_string() : std::string(amount.source()));
  if (end.cost) end.currency = std::move(currency);
}

SpanEnd end_of(const events::Event& event, std::string_view kind, const Value& body) {
  SpanEnd end;
  end.seq = event.seq;
  end.at = moment_of(event);
  end.duration_us = body["duration_us"].as_int();
  if (kind == "approval") return end;
  end.exit_code = body["exit_code"].as_int();
  if (kind == "command") {
    const bool interrupted = body["interrupted"].as_bool().value_or(false);
    end.status = interrupted ? "interrupted" : end.exit_code == 0 ? "ok" : "error";
    end.reason = name_of(body["signal"]);
    return end;
  }
  end.status = name_of(body["status"]);
  end.reason = name_of(body["error"]["error_type"]);
  if (kind != "model") return end;
  if (end.status == "ok")
    end.reason = body["finish_reasons"].size() > 0 ? name_of(*body["finish_reasons"].begin()) : std::nullopt;
  end.answered_by = name_of(body["model"]);
  end.first_token_us = natural_of(body["first_token_us"]);
  take_usage(end, body["usage"]);
  return end;
}

// Calls `take` with each span event that has a body, with its type, its key and its body.
template <typename Take>
void each_span_event(const std::vector<EventPtr>& events, Take take) {
  for (const EventPtr& event : events) {
    const SpanType* const type = event->run_no > 0 ? span_type_of(event->type) : nullptr;
    if (type == nullptr || !event->body) continue;
    const auto parsed = json::parse(*event->body);
    if (!parsed) continue;
    if (auto key = key_of(*event, *type, parsed->root())) take(*event, *type, *std::move(key), parsed->root());
  }
}

void count_begun(ReportRun& run, std::string_view kind) {
  run.model_calls += kind == "model";
  run.tool_calls += kind == "tool";
  run.steps += kind == "step";
  run.commands += kind == "command";
}

// Matches report_failed in the database.
bool has_failed(const SpanEnd& end) { return end.status && *end.status != "ok" && *end.status != "unknown"; }

// Adds a known value. An unknown value adds nothing and is not treated as 0.
template <typename Number>
void add_known(std::optional<Number>& sum, const std::optional<Number>& part) {
  if (part) sum = sum.value_or(0) + *part;
}

void count_ended(ReportRun& run, std::string_view kind, const SpanEnd& end) {
  const bool failed = has_failed(end);
  run.model_errors += kind == "model" && failed;
  run.tool_errors += kind == "tool" && failed;
  run.command_errors += kind == "command" && failed;
  add_known(run.input_tokens, end.input_tokens);
  add_known(run.output_tokens, end.output_tokens);
  add_known(run.cached_input_tokens, end.cached_input_tokens);
  add_known(run.reasoning_tokens, end.reasoning_tokens);
  add_known(run.cost, end.cost);
  if (!end.cost) return;
  run.currency = !run.currency || run.currency == end.currency ? *end.currency : std::string(several_currencies);
}

void count_event(ReportRun& run, const events::Event& event) {
  run.run_no = event.run_no;
  run.events += 1;
  run.last_seq = event.seq;
  run.last_event_at = event.recorded_at;
  run.messages += event.type == "message.added";
  run.errors += event.type == "error.raised";
  if (!event.occurred_at) return;
  run.first_occurred_at =
      run.first_occurred_at ? std::min(*run.first_occurred_at, *event.occurred_at) : *event.occurred_at;
  run.last_occurred_at =
      run.last_occurred_at ? std::max(*run.last_occurred_at, *event.occurred_at) : *event.occurred_at;
}

}  // namespace

std::map<SpanKey, std::int64_t> ended_keys(const std::vector<EventPtr>& events) {
  std::map<SpanKey, std::int64_t> keys;
  each_span_event(events, [&](const events::Event& event, const SpanType& type, std::string key, const Value&) {
    if (!type.begins) ++keys[{type.kind, event.run_no, std::move(key)}];
  });
  return keys;
}

ReportRows fold_report(const std::vector<EventPtr>& events, OpenSpans open) {
  ReportRows rows;
  std::map<std::int64_t, ReportRun> runs;
  std::map<std::int64_t, std::size_t> begun_here;  // key: seq; value: index in rows.spans
  for (const EventPtr& event : events) {
    if (event->run_no > 0) count_event(runs[event->run_no], *event);
    if (is_placed(event->type)) rows.places.push_back({event->type, event->seq, event->run_no});
    if (event->type != "event.redacted" || !event->body) continue;
    const auto parsed = json::parse(*event->body);
    const auto seq = parsed ? parsed->root()["seq"].as_int() : std::nullopt;
    if (seq) rows.erased.push_back({event->run_no, *seq});
  }
  each_span_event(events, [&](const events::Event& event, const SpanType& type, std::string key, const Value& body) {
    ReportRun& run = runs[event.run_no];
    std::vector<std::int64_t>& newest = open[{type.kind, event.run_no, key}];
    if (type.begins) {
      newest.push_back(event.seq);
      begun_here[event.seq] = rows.spans.size();
      rows.spans.push_back(beginning_of(event, type, std::move(key), body));
      return count_begun(run, type.kind);
    }
    SpanEnd end = end_of(event, type.kind, body);
    count_ended(run, type.kind, end);
    if (newest.empty()) {
      count_begun(run, type.kind);
      SpanRow& alone = rows.spans.emplace_back(beginning_of(event, type, std::move(key), body));
      alone.name = end.answered_by;
      alone.end = std::move(end);
      return;
    }
    const std::int64_t seq = newest.back();
    newest.pop_back();
    if (const auto here = begun_here.find(seq); here != begun_here.end()) {
      rows.spans[here->second].end = std::move(end);
    } else {
      rows.ended.push_back({type.kind, event.run_no, seq, std::move(end)});
    }
  });
  for (auto& [run_no, run] : runs) rows.runs.push_back(std::move(run));
  return rows;
}

}  // namespace muniment::store
