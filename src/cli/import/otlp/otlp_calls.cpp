// Translates spans of model and tool calls, each to two events.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/crypto/sha256.hpp"
#include "base/text.hpp"
#include "cli/import/otlp/otlp_trace.hpp"

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

// Returns nullopt if absent or not a list of short texts.
std::optional<std::vector<std::string>> finish_reasons(const OtlpAttributes& attributes) {
  const json::Value list = attributes.find("gen_ai.response.finish_reasons")["arrayValue"];
  std::vector<std::string> reasons;
  for (const json::Value item : list["values"]) {
    const auto reason = item["stringValue"].as_string();
    if (!reason || reason->size() > call_name_bytes_max || reasons.size() == finish_reasons_max) return std::nullopt;
    reasons.push_back(*reason);
  }
  return list.present() ? std::optional(reasons) : std::nullopt;
}

struct Usage {
  std::int64_t input = 0;
  std::int64_t output = 0;
};

// An embedding has no output tokens.
std::optional<Usage> usage_of(const OtlpAttributes& attributes) {
  const auto input = attributes.integer("gen_ai.usage.input_tokens"),
             output = attributes.integer("gen_ai.usage.output_tokens");
  const bool is_embedding =
      attributes.text("gen_ai.operation.name") == "embeddings" && !attributes.find("gen_ai.usage.output_tokens");
  if (!input || *input < 0 || (!output && !is_embedding) || output.value_or(0) < 0) return std::nullopt;
  return Usage{*input, output.value_or(0)};
}

// Attributes that the answer holds.
void place_answer(const OtlpAttributes& attributes, Placed& placed) {
  std::string ignored = take_name(attributes, "gen_ai.response.model", "", placed);
  if (finish_reasons(attributes)) placed.push_back("gen_ai.response.finish_reasons");
  if (usage_of(attributes)) placed.insert(placed.end(), {"gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"});
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
    answer.role = message["role"].string_or("assistant");
    whole = whole && answer.first.whole && answer.role == "assistant";
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
  const std::string text = any_text(attributes.find("gen_ai.output.messages"));
  const auto document = json::parse(text);
  const bool has_messages = document && document->root().is(json::Kind::array);
  Answer answer = has_messages ? answer_of(document->root(), said) : Answer{};
  if (!answer.first.parts.empty()) (void)remember(run_of(item), answer.role, answer.first, {}, nullptr);
  std::move(call.parts.begin(), call.parts.end(), std::back_inserter(answer.first.parts));
  for (const std::string& id : answer.first.tool_calls) {
    if (run_of(item).asked_by.size() < asked_calls_max) run_of(item).asked_by.emplace(id, call.call_id);
  }
  if (answer.reasons.empty()) answer.reasons = std::move(call.reasons);
  Placed ignored;
  json::Writer body;
  body.begin_object().member("call_id", call.call_id).member("status", status_of(item, span, attributes));
  body.member("model", take_name(attributes, "gen_ai.response.model", unknown_model, ignored));
  body.member("finish_reasons", said ? *said : answer.reasons);
  body.raw_member("content", "[" + joined(answer.first.parts, ",") + "]");
  if (const auto usage = usage_of(attributes)) {
    body.key("usage")
        .begin_object()
        .member("input_tokens", usage->input)
        .member("output_tokens", usage->output)
        .end_object();
  }
  write_outcome(body, item, span, attributes);
  if (!answer.rest.empty()) call.sources.push_back(std::move(answer.rest));
  if (!has_messages && !text.empty()) call.sources.push_back(json::quote(text));
  if (!call.sources.empty()) body.raw_member("x_source", "[" + joined(call.sources, ",") + "]");
  emit(item, "answer", "model.answered", std::move(body.end_object()).text(), end_time(item));
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
  if (const auto by = run_of(item).asked_by.find(asked); by != run_of(item).asked_by.end()) {
    body.member("requested_by", by->second);
    run_of(item).asked_by.erase(by);
  }
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
