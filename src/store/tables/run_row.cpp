#include "store/tables/run_row.hpp"

#include <algorithm>
#include <array>

#include "base/json/json.hpp"
#include "base/json/jsonb.hpp"
#include "events/run_state.hpp"

namespace muniment::store {
namespace {

constexpr std::size_t labels_stored_bytes_max = 65'000;  // limit of run.labels, as jsonb prints it

std::optional<std::string> text_of(const json::Value& value) { return value.as_string(); }

void start_row(RunRow& row, const events::Event& event, const json::Value& body) {
  row.run_no = event.run_no;
  row.run_id = event.run_id;
  row.first_seq = event.seq;
  row.status = "open";
  row.origin = event.origin;
  row.owner = event.actor;
  row.agent = body["agent"]["name"].string_or("");
  row.goal = text_of(body["goal"]);
  row.labels = body["labels"].is(json::Kind::object) ? std::string(body["labels"].source()) : "{}";
  row.parent = text_of(body["parent"]["run_id"]);
  row.external_id = text_of(body["external_id"]);
  row.started_at = event.recorded_at;
}

// Formats the `halt` of the state (docs/format.md, State): the same members, present or null.
std::string halt_of(const events::Event& event, const json::Value& body) {
  json::Writer out;
  out.begin_object();
  for (const std::string_view name : {"code", "reason", "pointer", "expected", "actual"}) {
    const auto text = body[name].as_string();
    out.key(name);
    if (text) {
      out.string(*text);
    } else {
      out.null();
    }
  }
  out.member("attempts", std::max<std::int64_t>(body["attempts"].as_int().value_or(0), 0));
  out.member("seq", event.seq).member("recorded_at", format_time(event.recorded_at)).end_object();
  return std::move(out).text();
}

}  // namespace

bool changes_run_row(std::string_view type) {
  constexpr std::array<std::string_view, 5> types = {"run.started", "run.ended", "run.halted", "run.resumed",
                                                     "run.annotated"};
  return std::find(types.begin(), types.end(), type) != types.end();
}

std::string merge_labels(std::string_view labels, std::string_view changes) {
  const auto before = json::parse(labels);
  const auto after = json::parse(changes);
  const json::Value old = before ? before->root() : json::Value();
  const json::Value fresh = after ? after->root() : json::Value();
  json::Writer out;
  out.begin_object();
  for (json::Value member : old) {
    const json::Value changed = fresh[member.key()];
    if (changed.is(json::Kind::null)) continue;
    out.raw_member(member.key(), changed ? changed.source() : member.source());
  }
  for (json::Value member : fresh) {
    if (member.is(json::Kind::null) || old[member.key()]) continue;
    out.raw_member(member.key(), member.source());
  }
  out.end_object();
  std::string merged = std::move(out).text();
  const auto whole = json::parse(merged);
  const bool fits = whole && json::canonical(whole->root()).size() <= events::run_labels_bytes_max;
  return fits ? merged : std::string(labels);
}

std::string_view stored_labels(const RunRow& row) {
  const auto labels = json::parse(row.labels);
  if (!labels) return "{}";
  const std::string text = json::canonical(labels->root());  // canonical, as in the state
  const auto canonical = json::parse(text);
  return canonical && json::jsonb_bytes_max(canonical->root()) <= labels_stored_bytes_max ? std::string_view(row.labels)
                                                                                          : "{}";
}

void apply_to_row(RunRow& row, const events::Event& event) {
  if (!changes_run_row(event.type)) return;
  const std::string_view text = event.body ? std::string_view(*event.body) : std::string_view("{}");
  const auto parsed = json::parse(text);
  const json::Value body = parsed ? parsed->root() : json::Value();
  if (event.type == "run.started") {
    start_row(row, event, body);
  } else if (event.type == "run.ended") {
    row.status = "ended";
    row.outcome = text_of(body["outcome"]);
    row.ended_at = event.recorded_at;
  } else if (event.type == "run.halted") {
    row.status = "halted";
    if (!row.halt) row.halt = halt_of(event, body);  // the first reason is kept
  } else if (event.type == "run.resumed") {
    row.status = "open";
    row.outcome.reset();
    row.ended_at.reset();
    row.halt.reset();
  } else if (body["labels"].is(json::Kind::object)) {
    row.labels = merge_labels(row.labels, body["labels"].source());
  }
}

}  // namespace muniment::store
