// Tests of OTLP traces: the golden file gives exactly these events; spans in any order form one trace; hostile files
// are harmless.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "adapters/import/guess.hpp"
#include "adapters/import/otlp/otlp_trace.hpp"
#include "base/ids.hpp"
#include "base/json/json.hpp"
#include "base/text.hpp"
#include "events/catalogue.hpp"
#include "support/imported.hpp"
#include "support/otlp_taken.hpp"

namespace muniment::cli {
namespace {

std::string whole_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::filesystem::path golden_folder() { return std::filesystem::path(MUNIMENT_GOLDEN) / "imports"; }

TEST(Otlp, TheGoldenTracesAreTheseEvents) {
  const TakenFile taken = take_path(golden_folder() / "otlp.jsonl");
  EXPECT_EQ(taken.problems, std::vector<std::string>());
  EXPECT_EQ(taken.duplicates, 1U);
  std::string text;
  for (const Taken& trace : taken.traces) {
    text += start_params(trace.head, {trace.name, trace.sha256, {}}, otlp_format) + "\n";
    for (const RunAction& action : trace.actions) text += shown(action) + "\n";
    json::Writer end;
    text += end.begin_object()
                .member("outcome", trace.head.end.outcome)
                .member("summary", trace.head.end.summary)
                .end_object()
                .text() +
            "\n";
  }
  const std::filesystem::path path = golden_folder() / "otlp.events.jsonl";
  if (std::getenv("MUNIMENT_ACCEPT") != nullptr) std::ofstream(path, std::ios::binary) << text;
  EXPECT_EQ(text, whole_file(path)) << "run with MUNIMENT_ACCEPT=1 to accept";
}

// The same spans in reverse order, in one request, or as a list: the run has the same name and content.
TEST(Otlp, WhereASpanStandsInTheFileMakesNoDifference) {
  const std::string text = whole_file(golden_folder() / "otlp.jsonl");
  std::vector<std::string> lines;
  std::string_view rest(text);
  while (const auto line = take_line(rest)) lines.emplace_back(*line);
  const TakenFile first = take_text(text);
  const std::vector<std::string> backwards(lines.rbegin(), lines.rend());
  for (const std::string& other : {joined(backwards, "\n"), "[" + joined(lines, ",\n") + "]"}) {
    const TakenFile second = take_text(other);
    ASSERT_EQ(first.traces.size(), second.traces.size());
    for (const Taken& trace : first.traces) {
      const auto same = std::find_if(second.traces.begin(), second.traces.end(),
                                     [&](const Taken& one) { return one.name == trace.name; });
      ASSERT_NE(same, second.traces.end());
      EXPECT_EQ(same->sha256, trace.sha256);
      std::string here, there;
      for (const RunAction& action : trace.actions) here += shown(action) + "\n";
      for (const RunAction& action : same->actions) there += shown(action) + "\n";
      EXPECT_EQ(here, there);
    }
  }
}

std::string one_span(const std::string& members) {
  return R"({"resourceSpans":[{"scopeSpans":[{"spans":[{)" + members + "}]}]}]}\n";
}

std::string span_at(const std::string& id, const std::string& parent, const std::string& start, const std::string& end,
                    const std::string& operation = {}) {
  std::string members =
      R"("traceId":"5b8efff798038103d269b633813fc60c","spanId":")" + id + "\",\"parentSpanId\":\"" + parent + "\"";
  if (!start.empty()) members += ",\"startTimeUnixNano\":" + start;
  if (!end.empty()) members += ",\"endTimeUnixNano\":" + end;
  if (!operation.empty())
    members += R"(,"attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":")" + operation + "\"}}]";
  return one_span(members);
}

TEST(Otlp, AClockThatJumpsMovesNoSpanOutOfItsParent) {
  const std::string id[] = {"00000000000000a0", "00000000000000a1", "00000000000000a2",
                            "00000000000000a3", "00000000000000a4", "00000000000000a5"};
  const TakenFile taken =
      take_text(span_at(id[1], id[0], "1", "2", "execute_tool") +
                span_at(id[2], id[0], "\"18446744073709551615\"", "3", "execute_tool") +
                span_at(id[3], id[0], "\"-5\"", "\"tomorrow\"", "execute_tool") +
                span_at(id[4], id[0], "1e30", "0", "execute_tool") + span_at(id[5], id[0], "", "", "execute_tool") +
                span_at(id[0], "", "1700000000000000000", "1700000001000000000"));
  ASSERT_EQ(taken.traces.size(), 1U);
  const std::vector<RunAction>& actions = taken.traces[0].actions;
  ASSERT_EQ(actions.size(), 1U + 3U + 10U);
  EXPECT_EQ(actions[1].event.type, "step.started");
  EXPECT_EQ(actions.back().event.type, "step.ended");
  std::size_t noted = 0;
  for (const RunAction& action : actions)
    noted += action.event.type == "tool.returned" && action.event.body.find("x_clock") != std::string::npos;
  EXPECT_EQ(noted, 4U);  // all spans except the one of 1970, which lasts a nanosecond
  std::set<std::string> times;
  for (const RunAction& action : actions) times.insert(action.event.occurred_at);
  EXPECT_TRUE(times.contains("2554-07-21T23:34:33.709551Z"));
  EXPECT_TRUE(times.contains("1970-01-01T00:00:00.000000Z"));
}

TEST(Otlp, ParentsInACircleAndTwoSpansWithOneIdAreAllKept) {
  const std::string a = "00000000000000a0", b = "00000000000000b0";
  const TakenFile taken = take_text(span_at(a, b, "2", "3", "invoke_agent") + span_at(b, a, "1", "4", "chat") +
                                    span_at(b, a, "1", "5", "chat") + span_at(a, a, "1", "9", "invoke_agent") +
                                    span_at(b, a, "1", "4", "chat"));
  ASSERT_EQ(taken.traces.size(), 1U);
  EXPECT_EQ(taken.duplicates, 1U);
  std::size_t calls = 0, agents = 0;
  for (const RunAction& action : taken.traces[0].actions) {
    calls += action.event.type == "model.called";
    agents += action.event.kind.ends_with("/agent");
  }
  EXPECT_EQ(calls, 2U);
  EXPECT_EQ(agents, 2U);
}

TEST(Otlp, ADeepChainOfAgentsNeedsNoStack) {
  std::string text;
  for (int i = 1; i <= 5'000; ++i) {
    char id[17], parent[17];
    (void)std::snprintf(id, sizeof id, "%016x", i);
    (void)std::snprintf(parent, sizeof parent, "%016x", i - 1);
    text += span_at(id, i == 1 ? "" : parent, "5", "6", "chat");
  }
  const TakenFile taken = take_text(text);
  ASSERT_EQ(taken.traces.size(), 1U);
  EXPECT_EQ(taken.traces[0].actions.size(), 10'001U);
}

TEST(Otlp, AFileWithTooManySpansIsRefusedAtTheLimit) {
  const std::string text = span_at("00000000000000a0", "", "1", "2") + span_at("00000000000000a1", "", "1", "2");
  EXPECT_EQ(take_text(text, 2).traces.size(), 1U);
  const TakenFile refused = take_text(text, 1);
  EXPECT_EQ(refused.traces.size(), 0U);
  ASSERT_EQ(refused.problems.size(), 1U);
  EXPECT_NE(refused.problems[0].find("over 1 spans in one file"), std::string::npos);
}

TEST(Otlp, HostileSpansBecomeEventsAllTheSame) {
  const std::string deep = std::string(50, '[') + std::string(50, ']');
  const std::string values[] = {
      R"({"stringValue":"x"})",
      R"({"intValue":"007"})",
      R"({"intValue":-1})",
      R"({"doubleValue":"NaN"})",
      R"({"kvlistValue":{"values":[{"key":"a","value":{}},{"key":"a","value":1}]}})",
      R"({"arrayValue":{}})",
      R"({"arrayValue":{"values":7}})",
      "{}",
      "7",
      "null",
      R"({"stringValue":"[{\"role\":7,\"parts\":[1,{\"type\":\"text\"},{\"type\":\"tool_call\",\"id\":7,\"name\":\"\"}]}]"})",
      R"({"stringValue":"[1]"})",
      R"({"stringValue":")" + deep + "\"}",
      R"({"stringValue":")" + std::string(300, 'n') + "\"}"};
  const std::string keys[] = {"gen_ai.input.messages",
                              "gen_ai.output.messages",
                              "gen_ai.system_instructions",
                              "gen_ai.request.model",
                              "gen_ai.response.id",
                              "gen_ai.tool.call.id",
                              "gen_ai.tool.call.arguments",
                              "gen_ai.response.finish_reasons",
                              "gen_ai.usage.input_tokens",
                              "error.type",
                              "gen_ai.request.temperature",
                              "gen_ai.tool.name",
                              "exception.type",
                              "gen_ai.agent.name",
                              "gen_ai.event.content",
                              "content"};
  const std::string operations[] = {"chat", "execute_tool", "invoke_agent", "embeddings", "other"};
  std::string text;
  int n = 0;
  for (const std::string& operation : operations) {
    for (const std::string& value : values) {
      std::string list = R"({"key":"gen_ai.operation.name","value":{"stringValue":")" + operation + "\"}}";
      for (const std::string& key : keys) list += ",{\"key\":\"" + key + "\",\"value\":" + value + "}";
      list += R"(,{"key":"gen_ai.request.model","value":{"stringValue":"twice"}},{},7)";
      char id[17];
      (void)std::snprintf(id, sizeof id, "%016x", ++n);
      const std::string events =
          R"({"name":"exception","attributes":[)" + list + R"(]},{"name":"gen_ai.user.message","attributes":[)" + list +
          R"(]},{"name":"gen_ai.choice","attributes":[)" + list + R"(]},{"name":"other","timeUnixNano":"x"},7,null)";
      text += one_span(R"("traceId":"FuIv2cFmTsq9nHrIi2Tn6A==","spanId":")" + std::string(id) +
                       R"(","parentSpanId":"000000000000000)" + std::to_string(n % 10) +
                       R"(","name":7,"status":{"code":"STATUS_CODE_ERROR"},"links":)" + deep + R"(,"attributes":[)" +
                       list + R"(],"events":[)" + events + "]");
    }
  }
  for (const char* ids : {R"("traceId":"","spanId":"")", R"("traceId":"zz","spanId":"../..","name":"x")",
                          R"("traceId":7,"spanId":[],"events":{},"attributes":{"a":1})"})
    text += one_span(ids);
  const TakenFile taken = take_text(text);
  EXPECT_EQ(taken.problems, std::vector<std::string>());
  EXPECT_EQ(taken.traces.size(), 3U);  // one trace collects the spans without a trace id
}

TEST(Otlp, WhatIsNoRequestIsNamedWithItsLineAndWhatItLooksLike) {
  const TakenFile taken = take_text(
      span_at("00000000000000a0", "", "1", "2") +
      "{\"traj\":[]}\nplain\n{\"resourceMetrics\":[]}\n{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[7]}]}]}\n{\"resourceSp");
  EXPECT_EQ(taken.traces.size(), 1U);
  ASSERT_EQ(taken.problems.size(), 5U);
  EXPECT_EQ(
      taken.problems[0],
      "line 2: this is not OTLP/JSON: it has no list \"resourceSpans\"; it looks like tau-bench (--format tau-bench)");
  EXPECT_NE(taken.problems[1].find("line 3: "), std::string::npos);
  EXPECT_NE(taken.problems[2].find("metrics"), std::string::npos);
  EXPECT_NE(taken.problems[3].find("line 5: a span is not an object"), std::string::npos);
}

TEST(ImportGuess, EveryGoldenTraceLooksLikeItsFormat) {
  const std::pair<const char*, const char*> expected[] = {{"otlp.jsonl", "otlp"}, {"claude-code.jsonl", "claude-code"}};
  for (const auto& [name, format] : expected) {
    const std::string text = whole_file(golden_folder() / name);
    std::string_view rest(text);
    bool found = false;
    while (const auto line = take_line(rest)) found = found || text_looks_like(*line).find(format) != std::string::npos;
    EXPECT_TRUE(found) << name;
  }
  for (const auto& [name, format] :
       {std::pair("openhands.json", "openhands"), std::pair("tau-bench.json", "tau-bench")}) {
    const std::string text = whole_file(golden_folder() / name);
    const auto document = json::parse(text);
    ASSERT_TRUE(document.ok());
    for (const json::Value record : document->root()) EXPECT_EQ(guessed_format(record), format);
  }
  EXPECT_EQ(text_looks_like(R"({"trajectory":[],"history":[]})"), "; it looks like swe-agent (--format swe-agent)");
  EXPECT_EQ(text_looks_like(R"({"event_id":"","body_hash":"","run_seq":0})"), "; it looks like jsonl (--format jsonl)");
  for (const char* text : {"{}", "[]", "plain", "7", "{\"content\":[]}"}) EXPECT_EQ(text_looks_like(text), "");
}

}  // namespace
}  // namespace muniment::cli
