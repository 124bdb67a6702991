// Tests of one model call as different instrumentations write it: each gives the same question, answer and usage.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "base/json/json.hpp"
#include "support/otlp_taken.hpp"

namespace muniment::cli {
namespace {

// The events of one trace, summarized for the assertions.
struct Seen {
  std::string goal;
  std::vector<std::string> messages;  // "role: texts"
  std::vector<std::string> answers;   // texts
  std::vector<std::string> usages;    // JSON; empty if the trace has none
  std::vector<std::string> tools;     // "name arguments → result (requested_by)"
  std::vector<std::string> models;    // "provider model → model, finish reasons"
  std::vector<std::string> types;
  std::vector<std::string> sources;  // x_source of each event
  bool understood = true;
};

std::string texts_of(const json::Value& content) {
  std::string text;
  for (const json::Value part : content) {
    if (!text.empty()) text += " | ";
    const std::string type = part["type"].string_or("");
    if (type == "text") text += part["content"].string_or("");
    if (type == "reasoning") text += "(" + part["content"].string_or("") + ")";
    if (type == "uri") text += part["uri"].string_or("");
    if (type == "tool_call")
      text += part["id"].string_or("-") + ":" + part["name"].string_or("") + std::string(part["arguments"].source());
    if (type == "tool_call_response") text += part["id"].string_or("-") + "=" + part["response"].string_or("");
  }
  return text;
}

Seen seen_of(const Taken& trace) {
  Seen seen;
  seen.goal = trace.head.goal;
  seen.understood = trace.understood;
  std::map<std::string, std::string> called;
  for (const RunAction& action : trace.actions) {
    if (action.kind != RunAction::Kind::event) continue;
    const auto document = json::parse(action.event.body);
    if (!document) continue;
    const json::Value body = document->root();
    const std::string& type = action.event.type;
    const std::string call = body["call_id"].string_or("");
    seen.types.push_back(type);
    if (body["x_source"]) seen.sources.emplace_back(body["x_source"].source());
    if (type == "message.added") seen.messages.push_back(body["role"].string_or("") + ": " + texts_of(body["content"]));
    if (type == "model.called") called[call] = body["provider"].string_or("") + " " + body["model"].string_or("");
    if (type == "model.answered") {
      seen.answers.push_back(texts_of(body["content"]));
      seen.usages.emplace_back(body["usage"] ? body["usage"].source() : std::string_view());
      seen.models.push_back(called[call] + " → " + body["model"].string_or("") + " " +
                            std::string(body["finish_reasons"].source()));
    }
    if (type == "tool.called") {
      called[call] = body["name"].string_or("") + " " + std::string(body["arguments"].source());
      if (body["requested_by"]) called[call] += " (" + body["requested_by"].string_or("") + ")";
    }
    if (type == "tool.returned") seen.tools.push_back(called[call] + " → " + texts_of(body["content"]));
  }
  return seen;
}

// Returns an attribute of a span: text becomes a stringValue, anything else is JSON.
std::string attribute(const std::string& key, const std::string& value) {
  json::Writer out;
  out.begin_object().member("key", key).key("value");
  if (value.starts_with("{\"int") || value.starts_with("{\"double") || value.starts_with("{\"array"))
    out.raw(value);
  else
    out.begin_object().member("stringValue", value).end_object();
  return std::move(out.end_object()).text();
}

struct Span {
  std::string id;
  std::string parent;
  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes;
};

std::string request_of(const std::vector<Span>& spans) {
  std::string text;
  std::uint64_t at = 1780000000000000000;
  for (const Span& span : spans) {
    std::string list;
    for (const auto& [key, value] : span.attributes) list += (list.empty() ? "" : ",") + attribute(key, value);
    if (!text.empty()) text += ",";
    const std::uint64_t end = span.parent.empty() ? at + 1'000'000'000 : at + 1'000'000;
    text += R"({"traceId":"5b8efff798038103d269b633813fc60c","spanId":"00000000000000)" + span.id +
            R"(","parentSpanId":")" + (span.parent.empty() ? "" : "00000000000000" + span.parent) + R"(","name":")" +
            span.name + R"(","startTimeUnixNano":")" + std::to_string(at) + R"(","endTimeUnixNano":")" +
            std::to_string(end) + R"(","attributes":[)" + list + "]}";
    at += 2'000'000;
  }
  return R"({"resourceSpans":[{"resource":{},"scopeSpans":[{"scope":{},"spans":[)" + text + "]}]}]}";
}

Seen seen_of(const std::vector<Span>& spans) {
  const TakenFile taken = take_text(request_of(spans));
  EXPECT_EQ(taken.problems, std::vector<std::string>());
  EXPECT_EQ(taken.traces.size(), 1U);
  return taken.traces.empty() ? Seen() : seen_of(taken.traces[0]);
}

std::optional<std::vector<Seen>> seen_of_case(const std::string& name) {
  const char* shared = std::getenv("MUNIMENT_SHARED");
  const std::filesystem::path path = std::filesystem::path(shared == nullptr ? "../shared" : shared) / "cases" / name;
  if (!std::filesystem::exists(path)) return std::nullopt;
  const TakenFile taken = take_path(path);
  EXPECT_EQ(taken.problems, std::vector<std::string>()) << name;
  std::vector<Seen> seen;
  for (const Taken& trace : taken.traces) seen.push_back(seen_of(trace));
  return seen;
}

using Texts = std::vector<std::string>;

constexpr const char* all_counts =
    R"({"input_tokens":11935,"output_tokens":9,"cached_input_tokens":5758,"cache_write_tokens":6174})";

TEST(OtlpCases, OneCallIsTheSameInEveryWayOfWritingIt) {
  for (const char* name : {"attributes-text.json", "attributes-structured.json", "details-span-event.json",
                           "details-log.jsonl", "snake-case.json"}) {
    SCOPED_TRACE(name);
    const auto cases = seen_of_case(std::string("otlp-details/") + name);
    if (!cases) GTEST_SKIP() << "../shared/cases is missing";
    ASSERT_EQ(cases->size(), 1U);
    const Seen& seen = cases->front();
    EXPECT_EQ(seen.goal, "What is the weather in Paris?");
    Texts messages{"system: You are brief.", "user: What is the weather in Paris?"};
    // This file has no instructions.
    if (name == std::string("attributes-structured.json")) messages.erase(messages.begin());
    EXPECT_EQ(seen.messages, messages);
    EXPECT_EQ(seen.answers, Texts{"It rains in Paris."});
    EXPECT_EQ(seen.usages, Texts{all_counts});
    EXPECT_EQ(seen.models, Texts{"anthropic m-1 → m-1-2026 [\"stop\"]"});
    EXPECT_TRUE(seen.understood);
  }
}

TEST(OtlpCases, MessagesWithoutPartsAreMessages) {
  const auto roles = seen_of_case("otlp-details/messages-role-content.json");
  const auto plain = seen_of_case("otlp-details/messages-plain.json");
  if (!roles || !plain) GTEST_SKIP() << "../shared/cases is missing";
  EXPECT_EQ(roles->at(0).messages, Texts{"user: What is the weather in Tokyo?"});
  EXPECT_EQ(roles->at(0).answers, Texts{R"(Let me check. | c1:weather"{\"city\":\"Tokyo\"}")"});
  EXPECT_EQ(roles->at(0).goal, "What is the weather in Tokyo?");
  EXPECT_EQ(roles->at(0).usages, Texts{all_counts});
  EXPECT_EQ(plain->at(0).messages, Texts{"user: hello?"});
  EXPECT_EQ(plain->at(0).answers, Texts{"hi there"});
  EXPECT_EQ(plain->at(0).goal, "hello?");
}

TEST(OtlpCases, UsageIsReadInEverySpelling) {
  const auto seen = seen_of_case("otlp-details/usage-forms.json");
  if (!seen) GTEST_SKIP() << "../shared/cases is missing";
  const std::string both = R"({"input_tokens":500,"output_tokens":7})";
  EXPECT_EQ(seen->at(0).usages, (Texts{R"({"input_tokens":500})", both, both, both}));
}

TEST(OtlpCases, ACallOfOpenInferenceIsACall) {
  const auto seen = seen_of_case("otlp-details/openinference.json");
  if (!seen) GTEST_SKIP() << "../shared/cases is missing";
  EXPECT_EQ(seen->at(0).goal, "What is the weather in Oslo?");
  EXPECT_EQ(seen->at(0).messages, Texts{"user: What is the weather in Oslo?"});
  EXPECT_EQ(seen->at(0).answers, Texts{"Snow in Oslo."});
  EXPECT_EQ(seen->at(0).usages, Texts{R"({"input_tokens":12,"output_tokens":4})"});
  EXPECT_EQ(seen->at(0).models, Texts{"openai m-4 → unknown []"});
}

TEST(OtlpCases, ATraceWithACharacterThatJsonRefusesIsKept) {
  const auto raw = seen_of_case("nul-in-traces/otlp-raw.jsonl");
  const auto inside = seen_of_case("nul-in-traces/otlp-json-in-text.jsonl");
  if (!raw || !inside) GTEST_SKIP() << "../shared/cases is missing";
  ASSERT_EQ(raw->size() + inside->size(), 4U);
  for (const auto* file : {&*raw, &*inside}) {
    for (const Seen& seen : *file) {
      EXPECT_EQ(seen.goal, "What is the weather in Paris?");
      ASSERT_EQ(seen.answers.size(), 1U);
      EXPECT_NE(seen.answers[0].find("It rains"), std::string::npos);
    }
  }
}

TEST(OtlpCases, OpenInferenceMapsAgentsCallsAndTools) {
  const Seen seen = seen_of(std::vector<Span>{
      {"a0",
       "",
       "Weather Agent",
       {{"openinference.span.kind", "AGENT"}, {"input.value", "Rain in Oslo?"}, {"output.value", "It rains."}}},
      {"a1",
       "a0",
       "ChatCompletion",
       {{"openinference.span.kind", "LLM"},
        {"llm.model_name", "m-4"},
        {"llm.system", "openai"},
        {"llm.invocation_parameters", R"({"temperature":0.5,"stop":["x"]})"},
        {"llm.input_messages.0.message.role", "system"},
        {"llm.input_messages.0.message.content", "Be brief."},
        {"llm.input_messages.1.message.role", "user"},
        {"llm.input_messages.1.message.contents.0.message_content.type", "text"},
        {"llm.input_messages.1.message.contents.0.message_content.text", "Rain in Oslo?"},
        {"llm.input_messages.1.message.contents.1.message_content.type", "image"},
        {"llm.input_messages.1.message.contents.1.message_content.image.image.url", "https://example.org/map.png"},
        {"llm.output_messages.0.message.role", "assistant"},
        {"llm.output_messages.0.message.tool_calls.0.tool_call.id", "c1"},
        {"llm.output_messages.0.message.tool_calls.0.tool_call.function.name", "weather"},
        {"llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments", R"({"city":"Oslo"})"},
        {"llm.token_count.prompt", R"({"intValue":"20"})"},
        {"llm.token_count.completion", R"({"intValue":"5"})"},
        {"llm.token_count.prompt_details.cache_read", R"({"intValue":"8"})"},
        {"llm.token_count.completion_details.reasoning", R"({"intValue":"2"})"},
        {"llm.cost.total", R"({"doubleValue":0.25})"}}},
      {"a2",
       "a0",
       "weather",
       {{"openinference.span.kind", "TOOL"},
        {"tool.name", "weather"},
        {"input.value", R"({"city":"Oslo"})"},
        {"output.value", "rain"}}},
      {"a3",
       "a0",
       "ChatCompletion",
       {{"openinference.span.kind", "LLM"},
        {"llm.model_name", "m-4"},
        {"llm.input_messages.10.message.role", "tool"},
        {"llm.input_messages.10.message.tool_call_id", "c1"},
        {"llm.input_messages.10.message.content", "rain"},
        {"llm.input_messages.9.message.role", "user"},
        {"llm.input_messages.9.message.content", "And?"},
        {"llm.output_messages.0.message.role", "assistant"},
        {"llm.output_messages.0.message.content", "It rains."}}},
  });
  EXPECT_EQ(seen.goal, "Rain in Oslo?");
  EXPECT_EQ(seen.messages, (Texts{"user: Rain in Oslo?", "system: Be brief.",
                                  "user: Rain in Oslo? | https://example.org/map.png", "user: And?", "tool: c1=rain"}));
  EXPECT_EQ(seen.answers, (Texts{R"(c1:weather"{\"city\":\"Oslo\"}")", "It rains."}));
  EXPECT_EQ(
      seen.usages[0],
      R"({"input_tokens":20,"output_tokens":5,"cached_input_tokens":8,"reasoning_tokens":2,"cost":{"amount":0.25,"currency":"USD"}})");
  EXPECT_EQ(seen.models[0], "openai m-4 → unknown []");
  EXPECT_EQ(seen.tools, Texts{R"(weather {"city":"Oslo"} (00000000000000a1) → rain)"});
}

// The attributes are those of the OpenAI Agents SDK's instrumentation.
TEST(OtlpCases, TheSpanAroundAnAgentIsNoAgent) {
  const TakenFile taken = take_text(request_of({
      {"a0", "", "Agent workflow", {{"openinference.span.kind", "AGENT"}}},
      {"a1", "a0", "Forecaster", {{"openinference.span.kind", "AGENT"}, {"agent.name", "Forecaster"}}},
      {"a2", "a1", "generation", {{"openinference.span.kind", "LLM"}, {"llm.model_name", "m"}}},
  }));
  ASSERT_EQ(taken.traces.size(), 1U);
  EXPECT_EQ(taken.traces[0].head.agent, "Forecaster");
  for (const RunAction& action : taken.traces[0].actions) EXPECT_EQ(action.kind, RunAction::Kind::event);
}

TEST(OtlpCases, TraceloopMapsPromptsCompletionsAndEntities) {
  const Seen seen = seen_of(std::vector<Span>{
      {"a0",
       "",
       "joke.workflow",
       {{"traceloop.span.kind", "workflow"}, {"traceloop.entity.input", R"({"args":["x"]})"}}},
      {"a1",
       "a0",
       "openai.chat",
       {{"llm.request.type", "chat"},
        {"gen_ai.system", "OpenAI"},
        {"gen_ai.request.model", "m-5"},
        {"gen_ai.response.model", "m-5-1"},
        {"gen_ai.prompt.0.role", "user"},
        {"gen_ai.prompt.0.content", "Tell a joke."},
        {"gen_ai.completion.0.role", "assistant"},
        {"gen_ai.completion.0.content", "Knock."},
        {"gen_ai.completion.0.finish_reason", "tool_calls"},
        {"gen_ai.completion.0.tool_calls.0.id", "c9"},
        {"gen_ai.completion.0.tool_calls.0.name", "laugh"},
        {"gen_ai.completion.0.tool_calls.0.arguments", "{}"},
        {"gen_ai.usage.prompt_tokens", "100"},
        {"llm.usage.completion_tokens", R"({"doubleValue":3})"},
        {"gen_ai.usage.cache_read_input_tokens", R"({"intValue":40})"}}},
      {"a2",
       "a0",
       "laugh.tool",
       {{"traceloop.span.kind", "tool"},
        {"traceloop.entity.name", "laugh"},
        {"traceloop.entity.input", R"({"loud":true})"},
        {"traceloop.entity.output", "ha"}}},
  });
  EXPECT_EQ(seen.goal, "Tell a joke.");
  EXPECT_EQ(seen.messages, Texts{"user: Tell a joke."});
  EXPECT_EQ(seen.answers, Texts{R"(Knock. | c9:laugh"{}")"});
  EXPECT_EQ(seen.usages, Texts{R"({"input_tokens":100,"output_tokens":3,"cached_input_tokens":40})"});
  EXPECT_EQ(seen.models, Texts{"OpenAI m-5 → m-5-1 [\"tool_calls\"]"});
  EXPECT_EQ(seen.tools, Texts{R"(laugh {"loud":true} (00000000000000a1) → ha)"});
}

TEST(OtlpCases, TheAiSdkMapsItsInnerCallsOnce) {
  const Seen seen = seen_of(std::vector<Span>{
      {"a0",
       "",
       "ai.generateText",
       {{"ai.operationId", "ai.generateText"},
        {"ai.model.id", "m-6"},
        {"ai.prompt", R"({"system":"Be kind.","prompt":"Add 1 and 2."})"},
        {"ai.response.text", "3"},
        {"ai.usage.inputTokens", R"({"intValue":30})"},
        {"ai.usage.outputTokens", R"({"intValue":4})"}}},
      {"a1",
       "a0",
       "ai.generateText.doGenerate",
       {{"ai.operationId", "ai.generateText.doGenerate"},
        {"ai.model.id", "m-6"},
        {"ai.model.provider", "openai.chat"},
        {"ai.prompt.messages",
         R"([{"role":"system","content":"Be kind."},{"role":"user","content":[{"type":"text","text":"Add 1 and 2."}]}])"},
        {"ai.response.toolCalls",
         R"([{"toolCallType":"function","toolCallId":"c3","toolName":"add","args":"{\"a\":1,\"b\":2}"}])"},
        {"ai.response.finishReason", "tool-calls"},
        {"ai.response.id", "r-1"},
        {"ai.response.model", "m-6-1"},
        {"ai.usage.promptTokens", R"({"intValue":30})"},
        {"ai.usage.completionTokens", R"({"intValue":4})"},
        {"ai.usage.cachedInputTokens", R"({"intValue":10})"}}},
      {"a2",
       "a1",
       "ai.toolCall",
       {{"ai.operationId", "ai.toolCall"},
        {"ai.toolCall.name", "add"},
        {"ai.toolCall.id", "c3"},
        {"ai.toolCall.args", R"({"a":1,"b":2})"},
        {"ai.toolCall.result", "3"}}},
      {"a3",
       "a0",
       "ai.generateText.doGenerate",
       {{"ai.operationId", "ai.generateText.doGenerate"},
        {"ai.model.id", "m-6"},
        {"ai.prompt.messages",
         R"([{"role":"system","content":"Be kind."},{"role":"user","content":[{"type":"text","text":"Add 1 and 2."}]},{"role":"assistant","content":[{"type":"tool-call","toolCallId":"c3","toolName":"add","args":"{\"a\":1,\"b\":2}"}]},{"role":"tool","content":[{"type":"tool-result","toolCallId":"c3","result":"3"}]}])"},
        {"ai.response.reasoning", "easy"},
        {"ai.response.text", "3"}}},
  });
  EXPECT_EQ(seen.goal, "Add 1 and 2.");
  EXPECT_EQ(seen.messages, (Texts{"system: Be kind.", "user: Add 1 and 2.", "tool: c3=3"}));
  EXPECT_EQ(seen.answers, (Texts{R"(c3:add"{\"a\":1,\"b\":2}")", "(easy) | 3"}));
  EXPECT_EQ(seen.usages, (Texts{R"({"input_tokens":30,"output_tokens":4,"cached_input_tokens":10})", ""}));
  EXPECT_EQ(seen.models[0], "openai.chat m-6 → m-6-1 [\"tool-calls\"]");
  EXPECT_EQ(seen.tools, Texts{R"(add {"a":1,"b":2} (r-1) → 3)"});
}

TEST(OtlpCases, ATraceWithoutCallsShowsTheContentOfItsRoot) {
  const Seen chain = seen_of(
      std::vector<Span>{{"a0",
                         "",
                         "chain",
                         {{"openinference.span.kind", "CHAIN"}, {"input.value", "Why?"}, {"output.value", "Because."}}},
                        {"a1", "a0", "parse", {{"openinference.span.kind", "CHAIN"}}}});
  EXPECT_EQ(chain.goal, "Why?");
  EXPECT_EQ(chain.messages, (Texts{"user: Why?", "assistant: Because."}));
  EXPECT_TRUE(chain.understood);
  const Seen none = seen_of(std::vector<Span>{{"a0", "", "GET /", {{"http.method", "GET"}}}});
  EXPECT_FALSE(none.understood);
}

TEST(OtlpCases, WhatAnotherConventionSaysMoreIsKept) {
  const Seen seen = seen_of(std::vector<Span>{{"a0",
                                               "",
                                               "llm",
                                               {{"openinference.span.kind", "LLM"},
                                                {"llm.model_name", "m"},
                                                {"llm.input_messages.0.message.role", "user"},
                                                {"llm.input_messages.0.message.content", "Hi"},
                                                {"llm.input_messages.0.message.mood", "glad"},
                                                {"metadata", "{\"k\":1}"},
                                                {"input.value", "raw"}}}});
  ASSERT_EQ(seen.messages, Texts{"user: Hi"});
  std::string all;
  for (const std::string& source : seen.sources) all += source;
  for (const char* kept : {"glad", "metadata", "raw", "openinference.span.kind"})
    EXPECT_NE(all.find(kept), std::string::npos) << kept;
}

TEST(OtlpCases, ASpanThatNamesAToolAndNoOperationIsAToolCall) {
  const Seen seen = seen_of(std::vector<Span>{
      {"a0", "", "work", {{"gen_ai.operation.name", "invoke_agent"}, {"gen_ai.agent.name", "helper"}}},
      {"a1",
       "a0",
       "running tool",
       {{"gen_ai.tool.name", "add"}, {"gen_ai.tool.call.arguments", R"({"a":1})"}, {"gen_ai.tool.call.result", "2"}}},
      {"a2", "a0", "chat", {{"gen_ai.tool.name", "add"}, {"gen_ai.request.model", "m-1"}}},
      {"a3", "a0", "rank", {{"gen_ai.tool.name", "add"}, {"openinference.span.kind", "RERANKER"}}}});
  EXPECT_EQ(seen.tools, Texts{R"(add {"a":1} → 2)"});
  EXPECT_EQ(std::ranges::count(seen.types, "model.answered"), 1);
}

TEST(OtlpCases, ADetailsRecordWithoutItsSpanIsACall) {
  const std::string record =
      R"({"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"1780000000900000000","eventName":"gen_ai.client.inference.operation.details","traceId":"5b8efff798038103d269b633813fc60c","spanId":"00000000000000a0","attributes":[)" +
      attribute("gen_ai.operation.name", "chat") + "," + attribute("gen_ai.request.model", "m-1") + "," +
      attribute("gen_ai.input.messages", R"([{"role":"user","parts":[{"type":"text","content":"Hi?"}]}])") + "," +
      attribute("gen_ai.output.messages", R"([{"role":"assistant","parts":[{"type":"text","content":"Hi."}]}])") +
      "]}]}]}]}";
  const TakenFile taken = take_text(record);
  ASSERT_EQ(taken.traces.size(), 1U);
  const Seen seen = seen_of(taken.traces[0]);
  EXPECT_EQ(seen.goal, "Hi?");
  EXPECT_EQ(seen.messages, Texts{"user: Hi?"});
  EXPECT_EQ(seen.answers, Texts{"Hi."});
}

}  // namespace
}  // namespace muniment::cli
