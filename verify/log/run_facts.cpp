#include "verify/log/run_facts.hpp"

#include <limits>

#include "verify/state/value.hpp"

namespace muniment::verify {
namespace {

constexpr std::size_t labels_bytes_max = 61'440;

std::string labels_text_of(const std::map<std::string, std::string>& labels) {
  std::string out = "{";
  for (const auto& [name, value] : labels) {
    if (out.size() > 1) out += ',';
    write_quoted(name, out);
    out += ':' + value;
  }
  return out + '}';
}

Text name_of_origin(std::int64_t origin) {
  switch (origin) {
    case 1: return "observed";
    case 2: return "reported";
    case 3: return "imported";
    default: return std::nullopt;
  }
}

}  // namespace

Text text_of(const json::Value& body, std::string_view member) { return body[member].as_string(); }

std::int64_t natural_of(const json::Value& body, std::string_view member) {
  const auto value = body[member].as_int();
  return value && *value > 0 ? *value : 0;
}

Text scalar_of(const json::Value& value) {
  if (value.is(json::Kind::number) || value.is(json::Kind::boolean)) return std::string(value.source());
  if (!value.is(json::Kind::string)) return std::nullopt;
  std::string quoted;
  write_quoted(value.string_or(""), quoted);
  return quoted;
}

void write_text(const Text& text, std::string& out) {
  if (text) {
    write_quoted(*text, out);
  } else {
    out += "null";
  }
}

std::int64_t capped_sum(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  return a > most - b ? most : a + b;
}

std::string RunFacts::labels_text() const { return labels_text_of(labels); }

void RunFacts::apply(const RunEvent& event, const json::Value& body) {
  if (event.type == "run.started") {
    start(event, body);
  } else if (event.type == "run.ended") {
    status = "ended";
    outcome = text_of(body, "outcome");
  } else if (event.type == "run.halted") {
    halted(event, body);
  } else if (event.type == "run.resumed") {
    status = "open";
    outcome = halt = std::nullopt;
  } else if (event.type == "run.annotated") {
    annotate(body);
  }
}

void RunFacts::start(const RunEvent& event, const json::Value& body) {
  status = "open";
  origin = name_of_origin(event.origin);
  started_at = format_time(event.recorded_at);
  const json::Value agent = body["agent"];
  has_agent = agent.is(json::Kind::object);
  agent_name = text_of(agent, "name");
  agent_id = text_of(agent, "id");
  agent_version = text_of(agent, "version");
  goal = text_of(body, "goal");
  const json::Value parent = body["parent"];
  has_parent = parent.is(json::Kind::object);
  parent_run_id = text_of(parent, "run_id");
  parent_run_seq = natural_of(parent, "run_seq");
  labels.clear();
  if (!body["labels"].is(json::Kind::object)) return;
  for (const json::Value label : body["labels"]) {
    if (const Text value = scalar_of(label)) labels.insert_or_assign(label.key(), *value);
  }
}

void RunFacts::halted(const RunEvent& event, const json::Value& body) {
  status = "halted";
  if (halt) return;  // the first reason is kept
  std::string out = "{\"actual\":";
  write_text(text_of(body, "actual"), out);
  out += ",\"attempts\":" + std::to_string(natural_of(body, "attempts")) + ",\"code\":";
  write_text(text_of(body, "code"), out);
  out += ",\"expected\":";
  write_text(text_of(body, "expected"), out);
  out += ",\"pointer\":";
  write_text(text_of(body, "pointer"), out);
  out += ",\"reason\":";
  write_text(text_of(body, "reason"), out);
  out += ",\"recorded_at\":";
  write_text(format_time(event.recorded_at), out);
  out += ",\"seq\":" + std::to_string(event.seq) + '}';
  halt = std::move(out);
}

void RunFacts::annotate(const json::Value& body) {
  if (!body["labels"].is(json::Kind::object)) return;
  auto merged = labels;
  for (const json::Value label : body["labels"]) {
    if (label.kind() == json::Kind::null) {
      merged.erase(label.key());
    } else if (const Text value = scalar_of(label)) {
      merged.insert_or_assign(label.key(), *value);
    }
  }
  if (labels_text_of(merged).size() <= labels_bytes_max) {
    labels = std::move(merged);
  } else {
    labels_refused = capped_sum(labels_refused, 1);
  }
}

}  // namespace muniment::verify
