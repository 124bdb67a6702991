#include "adapters/import/otlp/otlp_names.hpp"

#include <algorithm>
#include <iterator>

namespace muniment::cli {
namespace {

// Kinds of spans in which a name has its meaning.
constexpr unsigned in_model = 1, in_tool = 2, in_agent = 4, in_any = in_model | in_tool | in_agent;

struct ForeignName {
  std::string_view name;
  std::string_view attribute;
  unsigned kinds;
};

constexpr ForeignName foreign_names[] = {
    // Model and provider
    {"llm.request.model_name", "gen_ai.request.model", in_model},
    {"llm.model_name", "gen_ai.request.model", in_model},
    {"llm.request.model", "gen_ai.request.model", in_model},
    {"embedding.model_name", "gen_ai.request.model", in_model},
    {"ai.model.id", "gen_ai.request.model", in_model},
    {"llm.response.model_name", "gen_ai.response.model", in_model},
    {"llm.response.model", "gen_ai.response.model", in_model},
    {"ai.response.model", "gen_ai.response.model", in_model},
    {"llm.provider", "gen_ai.provider.name", in_model},
    {"llm.system", "gen_ai.provider.name", in_model},
    {"llm.vendor", "gen_ai.provider.name", in_model},
    {"ai.model.provider", "gen_ai.provider.name", in_model},
    {"ai.response.id", "gen_ai.response.id", in_model},
    {"llm.finish_reason", "gen_ai.response.finish_reasons", in_model},
    {"llm.response.finish_reason", "gen_ai.response.finish_reasons", in_model},
    {"llm.response.stop_reason", "gen_ai.response.finish_reasons", in_model},
    {"gen_ai.response.finish_reason", "gen_ai.response.finish_reasons", in_model},
    {"gen_ai.response.stop_reason", "gen_ai.response.finish_reasons", in_model},
    {"ai.response.finishReason", "gen_ai.response.finish_reasons", in_model},
    // Usage
    {"gen_ai.usage.prompt_tokens", "gen_ai.usage.input_tokens", in_model},
    {"llm.usage.prompt_tokens", "gen_ai.usage.input_tokens", in_model},
    {"llm.token_count.prompt", "gen_ai.usage.input_tokens", in_model},
    {"ai.usage.inputTokens", "gen_ai.usage.input_tokens", in_model},
    {"ai.usage.promptTokens", "gen_ai.usage.input_tokens", in_model},
    {"ai.usage.tokens", "gen_ai.usage.input_tokens", in_model},  // an embedding's
    {"gen_ai.usage.completion_tokens", "gen_ai.usage.output_tokens", in_model},
    {"llm.usage.completion_tokens", "gen_ai.usage.output_tokens", in_model},
    {"llm.token_count.completion", "gen_ai.usage.output_tokens", in_model},
    {"ai.usage.outputTokens", "gen_ai.usage.output_tokens", in_model},
    {"ai.usage.completionTokens", "gen_ai.usage.output_tokens", in_model},
    {"gen_ai.usage.cache_read_input_tokens", "gen_ai.usage.cache_read.input_tokens", in_model},
    {"gen_ai.usage.cached_input_tokens", "gen_ai.usage.cache_read.input_tokens", in_model},
    {"gen_ai.usage.input_tokens.cached", "gen_ai.usage.cache_read.input_tokens", in_model},
    {"gen_ai.usage.details.cache_read_tokens", "gen_ai.usage.cache_read.input_tokens", in_model},
    {"llm.usage.cache_read_input_tokens", "gen_ai.usage.cache_read.input_tokens", in_model},
    {"llm.token_count.prompt_details.cache_read", "gen_ai.usage.cache_read.input_tokens", in_model},
    {"llm.token_count.prompt_details.cache_input", "gen_ai.usage.cache_read.input_tokens", in_model},
    {"ai.usage.inputTokenDetails.cacheReadTokens", "gen_ai.usage.cache_read.input_tokens", in_model},
    {"ai.usage.cachedInputTokens", "gen_ai.usage.cache_read.input_tokens", in_model},
    {"gen_ai.usage.cache_write.input_tokens", "gen_ai.usage.cache_creation.input_tokens", in_model},
    {"gen_ai.usage.cache_creation_input_tokens", "gen_ai.usage.cache_creation.input_tokens", in_model},
    {"gen_ai.usage.cache_write_input_tokens", "gen_ai.usage.cache_creation.input_tokens", in_model},
    {"gen_ai.usage.details.cache_write_tokens", "gen_ai.usage.cache_creation.input_tokens", in_model},
    {"llm.usage.cache_creation_input_tokens", "gen_ai.usage.cache_creation.input_tokens", in_model},
    {"llm.token_count.prompt_details.cache_write", "gen_ai.usage.cache_creation.input_tokens", in_model},
    {"ai.usage.inputTokenDetails.cacheWriteTokens", "gen_ai.usage.cache_creation.input_tokens", in_model},
    {"gen_ai.usage.reasoning_tokens", "gen_ai.usage.reasoning.output_tokens", in_model},
    {"gen_ai.usage.details.reasoning_tokens", "gen_ai.usage.reasoning.output_tokens", in_model},
    {"llm.usage.reasoning_tokens", "gen_ai.usage.reasoning.output_tokens", in_model},
    {"llm.token_count.completion_details.reasoning", "gen_ai.usage.reasoning.output_tokens", in_model},
    {"ai.usage.outputTokenDetails.reasoningTokens", "gen_ai.usage.reasoning.output_tokens", in_model},
    {"ai.usage.reasoningTokens", "gen_ai.usage.reasoning.output_tokens", in_model},
    {"llm.cost.total", "gen_ai.usage.cost", in_model},
    // Content
    {"ai.prompt.messages", otlp_input_messages, in_model | in_agent},
    {"ai.prompt", otlp_input_messages, in_model | in_agent},
    {"gen_ai.prompt", otlp_input_messages, in_model | in_agent},
    {"input.value", otlp_input_messages, in_model | in_agent},
    {"traceloop.entity.input", otlp_input_messages, in_model | in_agent},
    {"gen_ai.completion", otlp_output_messages, in_model | in_agent},
    {"output.value", otlp_output_messages, in_model | in_agent},
    {"traceloop.entity.output", otlp_output_messages, in_model | in_agent},
    {"ai.prompt.tools", "gen_ai.tool.definitions", in_model},
    // Tools
    {"tool.name", "gen_ai.tool.name", in_tool},
    {"tool_call.function.name", "gen_ai.tool.name", in_tool},
    {"ai.toolCall.name", "gen_ai.tool.name", in_tool},
    {"traceloop.entity.name", "gen_ai.tool.name", in_tool},
    {"tool.id", "gen_ai.tool.call.id", in_tool},
    {"tool_call.id", "gen_ai.tool.call.id", in_tool},
    {"ai.toolCall.id", "gen_ai.tool.call.id", in_tool},
    {"tool_arguments", "gen_ai.tool.call.arguments", in_tool},
    {"gen_ai.tool.args", "gen_ai.tool.call.arguments", in_tool},
    {"tool_call.function.arguments", "gen_ai.tool.call.arguments", in_tool},
    {"ai.toolCall.args", "gen_ai.tool.call.arguments", in_tool},
    {"ai.toolCall.input", "gen_ai.tool.call.arguments", in_tool},
    {"input.value", "gen_ai.tool.call.arguments", in_tool},
    {"tool.parameters", "gen_ai.tool.call.arguments", in_tool},
    {"traceloop.entity.input", "gen_ai.tool.call.arguments", in_tool},
    {"tool_response", "gen_ai.tool.call.result", in_tool},
    {"ai.toolCall.result", "gen_ai.tool.call.result", in_tool},
    {"ai.toolCall.output", "gen_ai.tool.call.result", in_tool},
    {"output.value", "gen_ai.tool.call.result", in_tool},
    {"traceloop.entity.output", "gen_ai.tool.call.result", in_tool},
    // Agents and conversations
    {"agent.name", "gen_ai.agent.name", in_agent},
    {"graph.node.id", "gen_ai.agent.name", in_agent},
    {"traceloop.entity.name", "gen_ai.agent.name", in_agent},
    {"session.id", "gen_ai.conversation.id", in_any},
    {"traceloop.association.properties.session_id", "gen_ai.conversation.id", in_any},
    {"ai.telemetry.metadata.sessionId", "gen_ai.conversation.id", in_any},
};

struct SpreadPrefix {
  std::string_view prefix;
  std::string_view attribute;
};

constexpr SpreadPrefix spread_prefixes[] = {
    {"llm.input_messages.", otlp_input_messages},
    {"gen_ai.prompt.", otlp_input_messages},
    {"llm.prompts.", otlp_input_messages},
    {"llm.output_messages.", otlp_output_messages},
    {"gen_ai.completion.", otlp_output_messages},
    {"llm.completions.", otlp_output_messages},
    {"llm.choices.", otlp_output_messages},
    {"llm.tools.", "gen_ai.tool.definitions"},
    {"llm.request.functions.", "gen_ai.tool.definitions"},
};

struct ForeignOperation {
  std::string_view attribute;
  std::string_view value;
  std::string_view operation;  // empty: the span is of kind `other`
};

constexpr ForeignOperation foreign_operations[] = {
    {"gen_ai.operation.name", "call_llm", "chat"},
    {"gen_ai.operation.name", "completion", "text_completion"},
    {"gen_ai.operation.name", "embedding", "embeddings"},
    {"openinference.span.kind", "LLM", "chat"},
    {"openinference.span.kind", "EMBEDDING", "embeddings"},
    {"openinference.span.kind", "TOOL", "execute_tool"},
    {"openinference.span.kind", "AGENT", "invoke_agent"},
    {"traceloop.span.kind", "tool", "execute_tool"},
    {"traceloop.span.kind", "agent", "invoke_agent"},
    {"llm.request.type", "chat", "chat"},
    {"llm.request.type", "completion", "text_completion"},
    {"llm.request.type", "embedding", "embeddings"},
    {"ai.operationId", "ai.generateText.doGenerate", "chat"},
    {"ai.operationId", "ai.streamText.doStream", "chat"},
    {"ai.operationId", "ai.generateObject.doGenerate", "chat"},
    {"ai.operationId", "ai.streamObject.doStream", "chat"},
    {"ai.operationId", "ai.embed.doEmbed", "embeddings"},
    {"ai.operationId", "ai.embedMany.doEmbed", "embeddings"},
    {"ai.operationId", "ai.toolCall", "execute_tool"},
    // The calls inside these spans repeat their content and their usage.
    {"ai.operationId", "ai.generateText", ""},
    {"ai.operationId", "ai.streamText", ""},
    {"ai.operationId", "ai.generateObject", ""},
    {"ai.operationId", "ai.streamObject", ""},
    {"ai.operationId", "ai.embed", ""},
    {"ai.operationId", "ai.embedMany", ""},
    {"openinference.span.kind", "CHAIN", ""},
    {"openinference.span.kind", "RETRIEVER", ""},
    {"openinference.span.kind", "RERANKER", ""},
    {"openinference.span.kind", "GUARDRAIL", ""},
    {"openinference.span.kind", "EVALUATOR", ""},
    {"openinference.span.kind", "PROMPT", ""},
    {"traceloop.span.kind", "workflow", ""},
    {"traceloop.span.kind", "task", ""},
};

constexpr std::string_view input_names[] = {otlp_input_messages, "input.value", "ai.prompt", "ai.prompt.messages",
                                            "traceloop.entity.input"};
constexpr std::string_view output_names[] = {otlp_output_messages, "output.value", "ai.response.text",
                                             "ai.response.object", "traceloop.entity.output"};

unsigned kind_bits(OtlpKind kind) {
  return kind == OtlpKind::model ? in_model : kind == OtlpKind::tool ? in_tool : kind == OtlpKind::agent ? in_agent : 0;
}

const ForeignOperation* operation_of(const OtlpAttributes& attributes) {
  for (const ForeignOperation& row : foreign_operations) {
    if (attributes.find(row.attribute)["stringValue"].string_or("") == row.value) return &row;
  }
  return nullptr;
}

bool has_model(const OtlpAttributes& attributes) {
  return attributes.find("gen_ai.request.model").present() || attributes.find("llm.request.model").present();
}

// OpenInference marks the span around all agents of a run as an agent too: it has neither a name nor content.
bool is_frame(const OtlpAttributes& attributes) {
  if (attributes.find("gen_ai.operation.name")) return false;
  const auto is_name = [](const OtlpAttributes::One& one) {
    return one.key == "gen_ai.agent.name" || otlp_meaning(one.key, OtlpKind::agent).attribute == "gen_ai.agent.name";
  };
  return std::ranges::none_of(attributes.all(), is_name) && !otlp_has_text(attributes);
}

bool has_details(const json::Value& span) {
  for (const json::Value event : span["events"]) {
    if (event["name"].string_or("") == otlp_details_event) return true;
  }
  return false;
}

}  // namespace

OtlpMeaning otlp_meaning(std::string_view name, OtlpKind kind) {
  const unsigned kinds = kind_bits(kind);
  const auto found = std::find_if(std::begin(foreign_names), std::end(foreign_names),
                                  [&](const ForeignName& row) { return (row.kinds & kinds) != 0 && row.name == name; });
  if (found == std::end(foreign_names)) return {};
  return {found->attribute, static_cast<std::size_t>(found - std::begin(foreign_names))};
}

OtlpSpread otlp_spread(std::string_view name) {
  for (const SpreadPrefix& row : spread_prefixes) {
    if (!name.starts_with(row.prefix)) continue;
    const std::string_view path = name.substr(row.prefix.size());
    if (!path.empty() && path[0] >= '0' && path[0] <= '9')
      return {row.attribute, path, static_cast<std::size_t>(&row - spread_prefixes)};
  }
  return {};
}

std::string otlp_operation(const OtlpAttributes& attributes) {
  const ForeignOperation* const row = operation_of(attributes);
  std::string said = attributes.text("gen_ai.operation.name");
  if (!said.empty() && (row == nullptr || row->attribute != "gen_ai.operation.name")) return said;
  if (row != nullptr) return std::string(row->operation);
  const bool is_tool = attributes.find("gen_ai.tool.name").present() && !has_model(attributes);
  return is_tool ? "execute_tool" : "";
}

OtlpKind otlp_kind(const json::Value& span) {
  const OtlpAttributes attributes(span["attributes"]);
  const std::string operation = otlp_operation(attributes);
  if (operation == "execute_tool") return OtlpKind::tool;
  if (operation == "invoke_agent") return is_frame(attributes) ? OtlpKind::other : OtlpKind::agent;
  if (operation == "chat" || operation == "text_completion" || operation == "generate_content" ||
      operation == "embeddings")
    return OtlpKind::model;
  if (operation != "create_agent" && operation != "invoke_workflow" && has_model(attributes) &&
      (!operation.empty() || operation_of(attributes) == nullptr))
    return OtlpKind::model;
  return has_details(span) ? OtlpKind::model : OtlpKind::other;
}

bool otlp_is_details_log(const json::Value& record) {
  if (record["eventName"].string_or("") == otlp_details_event) return true;
  return OtlpAttributes(record["attributes"]).text("event.name") == otlp_details_event;
}

std::string otlp_input_text(const OtlpAttributes& attributes) {
  for (const std::string_view name : input_names) {
    if (std::string text = attributes.text(name); !text.empty()) return text;
  }
  return {};
}

bool otlp_has_text(const OtlpAttributes& attributes) {
  return !otlp_input_text(attributes).empty() ||
         std::any_of(std::begin(output_names), std::end(output_names),
                     [&](std::string_view name) { return attributes.find(name).present(); });
}

}  // namespace muniment::cli
