// Translates spans of model and tool calls, each to two events.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "adapters/import/otlp/otlp_trace.hpp"
#include "base/crypto/sha256.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t call_name_bytes_max = 256;
constexpr std::size_t finish_reasons_max = 100;
constexpr std::size_t asked_calls_max = 100'000;  // tool calls whose requesting model call is remembered
constexpr std::string_view request_prefix = "gen_ai.request.";

using Placed = std::vector<std::string_view>;

// Returns a text attribute as a name; a value that does not fit is also kept in x_source.
std::string take_name(const OtlpAttributes& attributes, std::string_view key, std::string_view fallback,
                      Placed& placed) {
  const json::Value any = attributes.find(key);
  const std::string text = any["stringValue"].string_or("");
  if (!text.empty() && text.size() <= call_name_bytes_max) placed.push_back(key);
  return name_or(text, fallback);
}

// gen_ai.request.temperature becomes "temperature".
void write_parameters(json::Writer& body, const OtlpAttributes& attributes, Placed& placed) {
  std::set<std::string_view> names;
  body.key("parameters").begin_object();
  for (const OtlpAttributes::One& one : attributes.all()) {
    const std::string_view key = one.key;
    const bool is_type = key == "gen_ai.output.type";
    if ((!is_type && !key.starts_with(request_prefix)) || key == "gen_ai.request.model" || !names.insert(key).second)
      continue;
    write_any(body.key(is_type ? "output_type" : key.substr(request_prefix.size())), one.value);
    placed.push_back(key);
  }
  body.end_object();
}

// Returns nullopt if absent or neither a short text nor a list of short texts.
std::optional<std::vector<std::string>> finish_reasons(const OtlpAttributes& attributes) {
  const json::Value any = attributes.find("gen_ai.response.finish_reasons");
  if (!any) return std::nullopt;
  const std::string text = any_text(any);
  const auto document = json::parse(text);
  if (!document || !document->root().is(json::Kind::array)) {
    if (!any["stringValue"] || text.empty() || text.size() > call_name_bytes_max) return std::nullopt;
    return std::vector{text};
  }
  std::vector<std::string> reasons;
  for (const json::Value item : document->root()) {
    const auto reason = item.as_string();
    if (!reason || reason->size() > call_name_bytes_max || reasons.size() == finish_reasons_max) return std::nullopt;
    reasons.push_back(*reason);
  }
  return reasons;
}

// Attributes of the usage and the members that hold them.
constexpr std::pair<std::string_view, std::string_view> usage_names[] = {
    {"gen_ai.usage.input_tokens", "input_tokens"},
    {"gen_ai.usage.output_tokens", "output_tokens"},
    {"gen_ai.usage.cache_read.input_tokens", "cached_input_tokens"},
    {"gen_ai.usage.cache_creation.input_tokens", "cache_write_tokens"},
    {"gen_ai.usage.reasoning.output_tokens", "reasoning_tokens"},
};
constexpr std::string_view cost_name = "gen_ai.usage.cost";  // in USD

// Writes the counts that the span has; a missing count is unknown, but an embedding has no output. Returns JSON, or
// empty if it has none.
std::string usage_json(const OtlpAttributes& attributes, Placed& placed) {
  json::Writer usage;
  bool any = false, has_output = false;
  usage.begin_object();
  for (const auto& [attribute, member] : usage_names) {
    const auto count = any_count(attributes.find(attribute));
    if (!count) continue;
    usage.member(member, *count);
    placed.push_back(attribute);
    any = true;
    has_output = has_output || member == "output_tokens";
  }
  const bool is_embedding = attributes.text("gen_ai.operation.name") == "embeddings";
  if (any && is_embedding && !has_output && !attributes.find("gen_ai.usage.output_tokens"))
    usage.member("output_tokens", 0);
  const json::Value cost = attributes.find(cost_name)["doubleValue"];
  if (const auto amount = cost.as_double(); amount && *amount >= 0) {
    usage.key("cost").begin_object().raw_member("amount", cost.source()).member("currency", "USD").end_object();
    placed.push_back(cost_name);
    any = true;
  }
  return any ? std::move(usage.end_object()).text() : std::string();
}

// Attributes that the answer holds.
void place_answer(const OtlpAttributes& attributes, Placed& placed) {
  std::string ignored = take_name(attributes, "gen_ai.response.model", "", placed);
  if (finish_reasons(attributes)) placed.push_back("gen_ai.response.finish_reasons");
  ignored = usage_json(attributes, placed);
  ignored = take_name(attributes, "error.type", "", placed);
}

// The first message of an answer becomes its content; the rest of it and further messages are kept unchanged.
struct Answer {
  OtlpParts first;
  std::vector<std::string> reasons;
  std::string role = "assistant";
  std::string rest;  // JSON or empty
};

Answer answer_of(const json::Value& messages, const std::optional<std::vector<std::string>>& said) {
  Answer answer;
  bool whole = messages.size() <= 1;
  std::size_t index = 0;
  for (const json::Value message : messages) {
    const auto reason = message["finish_reason"].as_string();
    if (reason && reason->size() <= call_name_bytes_max && answer.reasons.size() < finish_reasons_max)
      answer.reasons.push_back(*reason);
    whole = whole && (!message["finish_reason"].present() || (reason && reason->size() <= call_name_bytes_max));
    if (index++ > 0) continue;
    answer.first = otlp_message_parts(message);
    bool known = true;
    answer.role = otlp_role(message, known, "assistant");
    whole = whole && answer.first.whole && known && answer.role == "assistant";
  }
  if (said && !answer.reasons.empty() && *said != answer.reasons) whole = false;
  if (!whole) answer.rest = one_line_json(messages);
  return answer;
}

}  // namespace

void OtlpTrace::begin_model(std::uint32_t item) {
  const json::Value span = document_->root();
  const OtlpAttributes attributes(span["attributes"]);
  Placed placed;
  add_messages(item, attributes, "input", start_time(item), placed);
  add_span_events(item, true);
  Call call;
  call.call_id = new_call_id(item, attributes, "gen_ai.response.id", placed);
  json::Writer body;
  body.begin_object().member("call_id", call.call_id);
  body.member("operation", take_name(attributes, "gen_ai.operation.name", "unknown", placed));
  const bool is_new = attributes.find("gen_ai.provider.name").present();
  body.member("provider",
              take_name(attributes, is_new ? "gen_ai.provider.name" : "gen_ai.system", unknown_model, placed));
  body.member("model", take_name(attributes, "gen_ai.request.model", unknown_model, placed));
  write_parameters(body, attributes, placed);
  if (const std::string tools = attributes.text("gen_ai.tool.definitions"); !tools.empty()) {
    const std::string hash = to_hex(sha256(tools));
    body.member("tools_hash", hash);
    if (!run_of(item).tool_definitions.insert(hash).second)
      placed.emplace_back("gen_ai.tool.definitions");  // they are in the run
  }
  place_answer(attributes, placed);
  write_place(body, item, span, placed);
  calls_[item] = std::move(call);
  emit(item, "model", "model.called", std::move(body.end_object()).text(), start_time(item));
}

void OtlpTrace::end_model(std::uint32_t item) {
  const json::Value span = document_->root();
  const OtlpAttributes attributes(span["attributes"]);
  Call call = std::move(calls_[item]);
  calls_.erase(item);
  const auto said = finish_reasons(attributes);
  const std::string text = otlp_message_list(attributes.find(otlp_output_messages), "assistant");
  const auto document = json::parse(text);
  Answer answer = document ? answer_of(document->root(), said) : Answer{};
  if (!answer.first.parts.empty()) (void)remember(run_of(item), answer.role, answer.first, {}, nullptr);
  std::move(call.parts.begin(), call.parts.end(), std::back_inserter(answer.first.parts));
  note_asked(run_of(item), answer.first, call.call_id);
  if (answer.reasons.empty()) answer.reasons = std::move(call.reasons);
  Placed ignored;
  json::Writer body;
  body.begin_object().member("call_id", call.call_id).member("status", status_of(item, span, attributes));
  body.member("model", take_name(attributes, "gen_ai.response.model", unknown_model, ignored));
  body.member("finish_reasons", said ? *said : answer.reasons);
  body.raw_member("content", "[" + joined(answer.first.parts, ",") + "]");
  if (const std::string usage = usage_json(attributes, ignored); !usage.empty()) body.raw_member("usage", usage);
  write_outcome(body, item, span, attributes);
  if (!answer.rest.empty()) call.sources.push_back(std::move(answer.rest));
  if (!call.sources.empty()) body.raw_member("x_source", "[" + joined(call.sources, ",") + "]");
  emit(item, "answer", "model.answered", std::move(body.end_object()).text(), end_time(item));
}

void OtlpTrace::note_asked(Run& run, const OtlpParts& parts, const std::string& call_id) {
  for (const OtlpToolCall& asked : parts.tool_calls) {
    if (run.asked_by.size() >= asked_calls_max || run.asked_by_name.size() >= asked_calls_max) return;
    if (!asked.id.empty()) run.asked_by.emplace(asked.id, call_id);
    std::deque<std::string>& same = run.asked_by_name[asked.name];
    if (same.size() < asked_calls_max) same.push_back(call_id);
  }
}

// A tool call without an id is the oldest of its name that was requested. A call inside the span of a model's call is
// that call's, which has not answered yet.
std::optional<std::string> OtlpTrace::take_asked(std::uint32_t item, const std::string& id, const std::string& name) {
  Run& run = run_of(item);
  const std::uint32_t parent = order_.parents[item];
  if (const auto by = run.asked_by.find(id); by != run.asked_by.end()) {
    std::string call_id = std::move(by->second);
    run.asked_by.erase(by);
    std::deque<std::string>& same = run.asked_by_name[name];
    if (const auto one = std::ranges::find(same, call_id); one != same.end()) same.erase(one);
    return call_id;
  }
  if (parent != none && kind(parent) == OtlpKind::model && calls_.contains(parent)) return calls_[parent].call_id;
  const auto same = run.asked_by_name.find(name);
  if (!id.empty() || same == run.asked_by_name.end() || same->second.empty()) return std::nullopt;
  std::string call_id = std::move(same->second.front());
  same->second.pop_front();
  return call_id;
}

void OtlpTrace::begin_tool(std::uint32_t item) {
  const json::Value span = document_->root();
  const OtlpAttributes attributes(span["attributes"]);
  add_span_events(item, true);
  Placed placed{"gen_ai.operation.name"};
  Call call;
  const std::string asked = attributes.text("gen_ai.tool.call.id");
  call.call_id = new_call_id(item, attributes, "gen_ai.tool.call.id", placed);
  constexpr std::string_view prefix = "execute_tool ";
  std::string name = span["name"].string_or("");
  if (name.starts_with(prefix)) name.erase(0, prefix.size());
  json::Writer body;
  body.begin_object()
      .member("call_id", call.call_id)
      .member("name", take_name(attributes, "gen_ai.tool.name", name_or(name, "unknown"), placed));
  const std::string type = attributes.text("gen_ai.tool.type");
  const bool is_mcp = attributes.find("mcp.method.name").present();
  const bool is_type = type == "function" || type == "extension" || type == "datastore";
  body.member("kind", is_mcp ? "mcp" : is_type ? type : "function");
  if (is_type && !is_mcp) placed.emplace_back("gen_ai.tool.type");
  const std::string tool = attributes.text("gen_ai.tool.name");
  if (const auto by = take_asked(item, asked, tool.empty() ? name : tool)) body.member("requested_by", *by);
  if (const json::Value arguments = attributes.find("gen_ai.tool.call.arguments")) {
    placed.emplace_back("gen_ai.tool.call.arguments");
    if (arguments["stringValue"]) {
      write_arguments(body, arguments["stringValue"]);
    } else {
      write_any(body.key("arguments"), arguments);
    }
  }
  if (attributes.find("gen_ai.tool.call.result")) placed.emplace_back("gen_ai.tool.call.result");
  std::string ignored = take_name(attributes, "error.type", "", placed);
  write_place(body, item, span, placed);
  calls_[item] = std::move(call);
  emit(item, "tool", "tool.called", std::move(body.end_object()).text(), start_time(item));
}

void OtlpTrace::end_tool(std::uint32_t item) {
  const json::Value span = document_->root();
  const OtlpAttributes attributes(span["attributes"]);
  const Call call = std::move(calls_[item]);
  calls_.erase(item);
  json::Writer body;
  body.begin_object().member("call_id", call.call_id).member("status", status_of(item, span, attributes));
  if (const auto code = attributes.integer("process.exit.code")) body.member("exit_code", *code);
  body.key("content").begin_array();
  if (const json::Value result = attributes.find("gen_ai.tool.call.result")) write_part(body, "text", any_text(result));
  body.end_array();
  write_outcome(body, item, span, attributes);
  emit(item, "returned", "tool.returned", std::move(body.end_object()).text(), end_time(item));
}

}  // namespace muniment::cli
