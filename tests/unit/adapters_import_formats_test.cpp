// Tests of the trace formats: each has a golden trace in tests/golden/imports, which shows its translation; every
// translated body fits its schema; and the content of the real traces is found in their events.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <set>

#include "adapters/import/claude_code/claude_code_lines.hpp"
#include "adapters/import/events.hpp"
#include "adapters/import/format.hpp"
#include "adapters/import/formats/chat_turns.hpp"
#include "adapters/import/formats/formats.hpp"
#include "adapters/import/records.hpp"
#include "adapters/import/spill.hpp"
#include "adapters/import/translate/tally.hpp"
#include "adapters/import/translate/translation.hpp"
#include "base/crypto/sha256.hpp"
#include "base/ids.hpp"
#include "base/json/json.hpp"
#include "base/text.hpp"
#include "events/catalogue.hpp"
#include "support/imported.hpp"
#include "support/temporary_folder.hpp"

namespace muniment::cli {
namespace {

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Performs the daemon's checks of each event.
void check(const std::vector<ImportedEvent>& events) {
  std::set<std::string> kinds;
  for (const ImportedEvent& event : events) {
    EXPECT_TRUE(kinds.insert(event.kind).second) << "two events have the id of " << event.kind;
    expect_fits(event);
  }
}

std::string shown(const ImportedRun& run, const SourceFile& source, std::string_view format) {
  std::string text = start_params(run, source, format) + "\n";
  for (const ImportedEvent& event : run.events) {
    json::Writer line;
    line.begin_object().member("kind", event.kind).member("type", event.type);
    if (!event.step_id.empty()) line.member("step_id", event.step_id);
    if (!event.occurred_at.empty()) line.member("occurred_at", event.occurred_at);
    text += line.raw_member("body", event.body).end_object().text() + "\n";
  }
  json::Writer end;
  end.begin_object().member("outcome", run.end.outcome).member("summary", run.end.summary);
  if (!run.submission.empty()) end.member("submission", run.submission);
  return text + end.end_object().text() + "\n";
}

using Translate = Result<ImportedRun> (*)(const json::Value&);

void for_each_record(const std::filesystem::path& path, const std::function<void(const TraceRecord&)>& take) {
  auto reader = RecordReader::open(path);
  ASSERT_TRUE(reader.ok());
  for (;;) {
    const auto record = reader->next();
    ASSERT_TRUE(record.ok()) << record.error().message;
    if (!*record) return;
    take(**record);
  }
}

void expect_golden(const std::string& format, const std::string& trace, Translate translate) {
  const std::filesystem::path folder = std::filesystem::path(MUNIMENT_GOLDEN) / "imports";
  std::string text;
  for_each_record(folder / trace, [&](const TraceRecord& record) {
    const auto document = json::parse(record.text);
    ASSERT_TRUE(document.ok());
    const auto run = translate(document->root());
    ASSERT_TRUE(run.ok()) << run.error().message;
    check(run->events);
    text += shown(*run, {format, to_hex(sha256(record.text)), record.text}, format);
  });
  const std::filesystem::path path = folder / (format + ".events.jsonl");
  if (std::getenv("MUNIMENT_ACCEPT") != nullptr) std::ofstream(path, std::ios::binary) << text;
  EXPECT_EQ(text, bytes_of(path)) << "run with MUNIMENT_ACCEPT=1 to accept";
}

TEST(ImportFormats, TheGoldenTraceOfOpenHandsIsTheseEvents) {
  expect_golden("openhands", "openhands.json", translate_openhands);
}
TEST(ImportFormats, TheGoldenTraceOfTauBenchIsTheseEvents) {
  expect_golden("tau-bench", "tau-bench.json", translate_tau_bench);
}

// The same for formats whose files are one run.
void expect_golden_run(const std::string& name, const std::string& trace, std::string_view format) {
  const std::filesystem::path folder = std::filesystem::path(MUNIMENT_GOLDEN) / "imports";
  const auto runs = translate_source(*find_format(format), {name, bytes_of(folder / trace), 0, true});
  ASSERT_TRUE(runs.ok()) << runs.error().message;
  ASSERT_EQ(runs->size(), 1U);
  check(runs->front().run.events);
  const std::string text = shown(runs->front().run, runs->front().source, format);
  const std::filesystem::path path = folder / (name + ".events.jsonl");
  if (std::getenv("MUNIMENT_ACCEPT") != nullptr) std::ofstream(path, std::ios::binary) << text;
  EXPECT_EQ(text, bytes_of(path)) << "run with MUNIMENT_ACCEPT=1 to accept";
}

TEST(ImportFormats, TheGoldenTraceOfMessagesIsTheseEvents) {
  expect_golden_run("messages", "messages.jsonl", messages_format);
}
TEST(ImportFormats, TheGoldenRequestOfAnApiIsTheseEvents) {
  expect_golden("messages-request", "messages-request.json", translate_message_list);
}
TEST(ImportFormats, TheGoldenRolloutOfCodexIsTheseEvents) { expect_golden_run("codex", "codex.jsonl", codex_format); }
TEST(ImportFormats, TheGoldenOutputOfCodexExecIsTheseEvents) {
  expect_golden_run("codex-exec", "codex-exec.jsonl", codex_format);
}
TEST(ImportFormats, TheGoldenSessionOfGeminiCliIsTheseEvents) {
  expect_golden("gemini-cli", "gemini-cli.json", translate_gemini_cli);
}
TEST(ImportFormats, TheGoldenTrajectoryInAtifIsTheseEvents) { expect_golden("atif", "atif.json", translate_atif); }

TEST(ImportFormats, CallsInTheFormOfOpenAiAreToolCallsToo) {
  const auto runs = translate_source(*find_format(messages_format), {"openai",
                                                                     R"({"role":"user","content":"Which files?"}
{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{\"path\":\".\"}"}}]}
{"role":"tool","tool_call_id":"c1","content":"a.txt"}
broken
)",
                                                                     0, true});
  ASSERT_TRUE(runs.ok()) << runs.error().message;
  ImportTally tally;
  std::map<std::string, std::string> bodies;
  for (const ImportedEvent& event : runs->front().run.events) {
    tally.add(event);
    bodies[event.type] = event.body;
  }
  EXPECT_NE(bodies["tool.called"].find(R"("name":"ls")"), std::string::npos) << bodies["tool.called"];
  EXPECT_NE(bodies["tool.called"].find(R"({"path":"."})"), std::string::npos) << bodies["tool.called"];
  EXPECT_NE(bodies["tool.returned"].find("a.txt"), std::string::npos) << bodies["tool.returned"];
  EXPECT_EQ(tally.not_understood(), 0U);
  EXPECT_EQ(tally.unreadable(), 1U);
}

TEST(ImportFormats, AUsageMayHaveOneSideAndNumbersAsText) {
  const auto usage = [](std::string_view text) { return call_usage(json::parse(text)->root(), json::Value{}); };
  EXPECT_EQ(usage(R"({"input_tokens":"12","output_tokens":3})"), R"({"input_tokens":12,"output_tokens":3})");
  EXPECT_EQ(usage(R"({"completion_tokens":"7"})"), R"({"output_tokens":7})");
  EXPECT_EQ(usage(R"({"prompt_tokens":5,"completion_tokens":null})"), R"({"input_tokens":5})");
  EXPECT_EQ(usage(R"({"prompt_tokens":"many","completion_tokens":-1})"), "");
}

// Returns the actions of a session, read line by line; `settled` waits after every line, as a live recording does.
std::vector<RunAction> actions_of(std::string_view text, bool settled = false) {
  ClaudeCodeLines lines;
  std::vector<RunAction> actions;
  std::uint64_t number = 0;
  while (const auto line = take_line(text)) {
    lines.take(*line, ++number, actions);
    if (settled) lines.settle(actions);
  }
  if (!text.empty()) lines.take(text, ++number, actions);
  lines.finish(actions);
  return actions;
}

void check(const std::vector<RunAction>& actions) {
  std::map<std::string, std::vector<ImportedEvent>> events;
  for (const RunAction& action : actions) {
    if (action.kind == RunAction::Kind::event) events[action.child].push_back(action.event);
  }
  for (const auto& [child, list] : events) check(list);
}

TEST(ClaudeCode, TheGoldenSessionIsTheseEvents) {
  const std::filesystem::path folder = std::filesystem::path(MUNIMENT_GOLDEN) / "imports";
  const std::vector<RunAction> actions = actions_of(bytes_of(folder / "claude-code.jsonl"));
  check(actions);
  std::string text;
  for (const RunAction& action : actions) text += shown(action) + "\n";
  const std::filesystem::path path = folder / "claude-code.events.jsonl";
  if (std::getenv("MUNIMENT_ACCEPT") != nullptr) std::ofstream(path, std::ios::binary) << text;
  EXPECT_EQ(text, bytes_of(path)) << "run with MUNIMENT_ACCEPT=1 to accept";
}

// A message that is settled between its lines is recorded as several messages; calls and returns are the same.
TEST(ClaudeCode, ALiveRecordingSeesTheSameCalls) {
  const std::string text = bytes_of(std::filesystem::path(MUNIMENT_GOLDEN) / "imports" / "claude-code.jsonl");
  const std::vector<RunAction> live = actions_of(text, true);
  check(live);
  const auto calls = [](const std::vector<RunAction>& actions) {
    std::vector<std::string> out;
    for (const RunAction& action : actions) {
      const std::string& type = action.event.type;
      if (type == "tool.called" || type == "tool.returned" || type == "message.added" || type == "context.compacted") {
        if (type == "message.added" && action.event.body.find("\"assistant\"") != std::string::npos) continue;
        out.push_back(type + " " + action.event.step_id + " " + action.event.body);
      }
    }
    return out;
  };
  EXPECT_EQ(calls(live), calls(actions_of(text)));
  std::size_t answers = 0, models = 0;
  for (const RunAction& action : live) {
    answers += action.event.type == "model.answered";
    models += action.event.type == "model.called";
  }
  EXPECT_EQ(answers, models);
}

TEST(ClaudeCode, HostileLinesBecomeEventsAllTheSame) {
  const std::string deep = std::string(70, '[') + std::string(70, ']');
  const std::string lines[] = {
      "",
      "[]",
      "null",
      "{",
      "\xff\xfe",
      std::string("a\0b", 3),
      R"({"type":7,"message":[]})",
      R"({"type":"user","message":{"content":)" + deep + "}}",
      R"({"type":"assistant","message":{"content":[1,null,"x",{"type":"text","text":7},{"type":"tool_use"},{"type":"tool_use","input":[1]}],"usage":{"input_tokens":-1,"output_tokens":9223372036854775807}}})",
      R"({"type":"user","isSidechain":true,"parentUuid":"a","uuid":"a","message":{"content":[{"type":"tool_result"},{"type":"tool_result","tool_use_id":""}]}})",
      R"({"type":"user","isSidechain":true,"parentUuid":"b","uuid":"c","message":{"content":"x"}})",
      R"({"type":"user","isSidechain":true,"parentUuid":"c","uuid":"b","agentId":"../../etc/\u0001","message":{"content":"x"}})",
      R"({"type":"system","subtype":"compact_boundary","compactMetadata":{"trigger":"","preTokens":-5}})",
      R"({"type":"system","subtype":"compact_boundary"})",
      R"({"type":"A Very-Long type/with.everything and more and more and more and more"})",
      R"({"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"never","is_error":true,"content":"Permission to use Bash has been denied."}]},"toolUseResult":{"filePath":7,"structuredPatch":1,"file":[]}})"};
  std::string text;
  for (const std::string& first : lines) {
    for (const std::string& second : lines) text += first + "\n" + second + "\n";
  }
  check(actions_of(text));
  check(actions_of(text, true));
}

void collect(const json::Value& value, std::string& out, std::set<std::string>* strings) {
  if (const auto text = value.as_string()) {
    out += *text;
    out += '\0';
    if (strings != nullptr) strings->insert(*text);
    // Arguments are a JSON text, and are recorded as its value.
  }
  for (const json::Value item : value) collect(item, out, strings);
}

void expect_nothing_lost(const std::filesystem::path& path, Translate translate) {
  std::size_t runs = 0;
  for_each_record(path, [&](const TraceRecord& record) {
    const auto document = json::parse(record.text);
    ASSERT_TRUE(document.ok());
    const auto run = translate(document->root());
    ASSERT_TRUE(run.ok()) << run.error().message;
    check(run->events);
    std::string held = run->submission + '\0' + run->external_id + '\0';
    for (const auto& label : run->labels) held += label.second + '\0';
    for (const ImportedEvent& event : run->events) {
      held += event.type + '\0';  // the class of a part is in the event's type
      collect(json::parse(event.body)->root(), held, nullptr);
    }
    std::string all;
    std::set<std::string> strings;
    collect(document->root(), all, &strings);
    strings.erase("assistant");  // the role of messages that are recorded as model.answered
    for (const std::string& text : strings) {
      if (text.find(": ") != std::string::npos && document->root()["messages_display"]) {
        std::string_view rest(text);
        while (const auto line = take_line(rest)) {
          const std::string_view said = line->substr(
              std::min(line->size(), line->find(": ") == std::string_view::npos ? 0 : line->find(": ") + 2));
          EXPECT_NE(held.find(said), std::string::npos) << path << ": lost: " << said.substr(0, 200);
        }
      } else if (text.find("_observation") == std::string::npos && text.find("_action") == std::string::npos) {
        EXPECT_NE(held.find(text), std::string::npos) << path << ": lost: " << text.substr(0, 200);
      }
    }
    ++runs;
  });
  EXPECT_GT(runs, 0U) << path;
}

void expect_nothing_lost_in(const std::string& folder_name, Translate translate) {
  const char* shared = std::getenv("MUNIMENT_SHARED");
  const std::filesystem::path folder =
      std::filesystem::path(shared == nullptr ? "../shared" : shared) / "data/traces" / folder_name;
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no traces at " << folder;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) expect_nothing_lost(entry.path(), translate);
}

TEST(ImportFormats, EveryStringOfEveryRealOpenHandsTraceIsFound) {
  expect_nothing_lost_in("openhands", translate_openhands);
}
TEST(ImportFormats, EveryStringOfEveryRealTauBenchTraceIsFound) {
  expect_nothing_lost_in("tau-bench", translate_tau_bench);
}

Result<ImportedRun> translated(Translate translate, const std::string& text) {
  return translate(json::parse(text)->root());
}

std::string last_status(const Result<ImportedRun>& run) {
  if (!run) return run.error().message;
  for (auto event = run->events.rbegin(); event != run->events.rend(); ++event) {
    if (event->type == "tool.returned") return json::parse(event->body)->root()["status"].string_or("");
  }
  return "none";
}

TEST(ImportFormats, AResultOfWhichNothingIsSaidIsUnknown) {
  const auto bench = [](const std::string& said) {
    return translated(
        translate_tau_bench,
        R"({"traj":[{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f"}}]},{"role":"tool","tool_call_id":"c","content":)" +
            said + "}]}");
  };
  EXPECT_EQ(last_status(bench(R"("{}")")), "ok");
  EXPECT_EQ(last_status(bench(R"("Error: no")")), "error");
  EXPECT_EQ(last_status(bench(R"("")")), "unknown");
  EXPECT_EQ(last_status(bench("null")), "unknown");
  EXPECT_EQ(bench("null")->end.outcome, "unknown") << "no reward is said";
  const auto hands = [](const std::string& said) {
    return translated(
        translate_openhands,
        R"({"content":[{"class_":"code_action","language":"bash","content":"x"},{"class_":"text_observation","content":")" +
            said + R"("}]})");
  };
  EXPECT_EQ(last_status(hands("[Command finished with exit code 0]")), "ok");
  EXPECT_EQ(last_status(hands("[Command finished with exit code 2] \\n")), "error");
  EXPECT_EQ(last_status(hands("a log: [Command finished with exit code 2] and more")), "unknown")
      << "a text that was read";
  EXPECT_EQ(last_status(hands("ERROR: no")), "error");
  EXPECT_EQ(last_status(hands("three files")), "unknown");
  EXPECT_EQ(hands("x")->end.outcome, "unknown");
  EXPECT_EQ(hands("x")->submission, "");
}

TEST(ImportFormats, WhatIsNoTraceIsRefused) {
  for (const char* text :
       {"{}", "[]", "7", "null", R"({"content":7})", R"({"content":[1]})", R"({"content":[{"type":"text"}]})",
        R"({"content":[]})", R"({"messages":[{}]})", R"({"messages":[null]})", R"({"traj":{}})", R"({"traj":["x"]})",
        R"({"messages_display":"nobody: hello"})", R"({"messages_display":""})"}) {
    EXPECT_FALSE(translate_openhands(json::parse(text)->root()).ok()) << text;
    EXPECT_FALSE(translate_tau_bench(json::parse(text)->root()).ok()) << text;
  }
}

TEST(ImportFormats, WhatIsNestedDeeplyIsKeptAsText) {
  std::string text = R"({"traj":[],"deep":)" + std::string(60, '[') + std::string(60, ']') + "}";
  const auto run = translate_tau_bench(json::parse(text)->root());
  ASSERT_TRUE(run.ok());
  ASSERT_EQ(run->events.size(), 1U);
  EXPECT_NE(run->events[0].body.find(R"("deep":"[[[[)"), std::string::npos) << run->events[0].body;
}

class KeepingSink : public ImportSink {
 public:
  Result<bool> start(const std::string&) override { return true; }
  Result<ImportedArtifact> put(const std::string&, const std::string& mime_type, std::string_view bytes) override {
    kept.emplace_back(mime_type, bytes);
    return ImportedArtifact{"0190f3a1-7c00-7abc-8def-0123456789ab", to_hex(sha256(bytes)),
                            static_cast<std::int64_t>(bytes.size())};
  }
  Status append(std::size_t, const std::vector<ImportedEvent>&) override { return success(); }
  Status end(const RunEnd&) override { return success(); }
  std::vector<std::pair<std::string, std::string>> kept;
};

TEST(ShrinkBody, EveryLongTextBecomesAReferenceThatItsSchemaTakes) {
  const std::string large(300'000, 'x');
  KeepingSink sink;
  const std::vector<ImportedEvent> events = {
      {"a", "message.added", "s",
       R"({"message_id":"m","role":"user","content":[{"type":"text","content":")" + large + R"("}]})"},
      {"b", "tool.called", "s", R"({"call_id":"c","name":"n","kind":"function","arguments":{"a":")" + large + R"("}})"},
      {"c", "error.raised", "s",
       R"({"error_type":"e","message":")" + large + R"(","x_source":{"a":[")" + large + R"("]}})"},
      {"d", "x.a.b", "s", R"({"many":[)" + joined(std::vector<std::string>(100'000, "1234"), ",") + "]}"}};
  for (const ImportedEvent& event : events) {
    const auto body = shrink_body(sink, "r1", event);
    ASSERT_TRUE(body.ok()) << body.error().message;
    EXPECT_LT(body->size(), 10'000U);
    const Status fits = events::check_body(event.type, json::parse(*body)->root());
    EXPECT_TRUE(fits.ok()) << event.type << ": " << (fits ? "" : fits.error().message);
  }
  ASSERT_EQ(sink.kept.size(), 5U);
  EXPECT_EQ(sink.kept[0], std::pair(std::string("text/plain"), large));
  EXPECT_EQ(sink.kept[1].first, "application/json");
  EXPECT_EQ(sink.kept[2], std::pair(std::string("text/plain"), large));
}

TEST(ShrinkBody, WhatIsTooLargeEvenSoIsRefused) {
  KeepingSink sink;
  const std::string parts =
      joined(std::vector<std::string>(900, R"({"type":"text","content":")" + std::string(500, 'x') + "\"}"), ",");
  const auto body = shrink_body(
      sink, "r1", {"a", "message.added", "", R"({"message_id":"m","role":"user","content":[)" + parts + "]}"});
  ASSERT_FALSE(body.ok());
  EXPECT_EQ(body.error().code, Errc::too_large);
}

std::vector<std::string> records_of(const std::string& text, std::string* error = nullptr) {
  test::TemporaryFolder folder;
  const std::filesystem::path path = std::filesystem::path(folder.path()) / "trace";
  std::ofstream(path, std::ios::binary) << text;
  auto reader = RecordReader::open(path);
  EXPECT_TRUE(reader.ok());
  std::vector<std::string> records;
  while (reader->goes_on()) {
    const auto record = reader->next();
    if (!record) {
      if (error != nullptr) *error = record.error().message;
      continue;
    }
    if (!*record) break;
    EXPECT_EQ((*record)->number, records.size() + 1);
    EXPECT_EQ(text.substr(static_cast<std::size_t>((*record)->offset), (*record)->text.size()), (*record)->text);
    records.push_back(std::to_string((*record)->line) + ":" + std::string((*record)->text));
  }
  return records;
}

TEST(RecordReader, ReadsListsLinesAndObjectsOneAfterTheOther) {
  using Records = std::vector<std::string>;
  EXPECT_EQ(records_of("[]"), Records());
  EXPECT_EQ(records_of(""), Records());
  EXPECT_EQ(records_of(" \n\n"), Records());
  EXPECT_EQ(records_of("[\n{\"a\":\"]}\\\"\"},\n\n[2], 7 ,\"x,\"]\n"),
            (Records{"2:{\"a\":\"]}\\\"\"}", "4:[2]", "4:7", "4:\"x,\""}));
  EXPECT_EQ(records_of("\xef\xbb\xbf{\"a\":1}\n\n{\"b\"\r\nnot json\n{}"),
            (Records{"1:{\"a\":1}", "3:{\"b\"\r", "4:not json", "5:{}"}));
  EXPECT_EQ(records_of("{\n\"a\":1\n}\n{\n}"), (Records{"1:{\n\"a\":1\n}", "4:{\n}"}));
}

TEST(RecordReader, SaysInWhichLineSomethingIsWrong) {
  const std::pair<const char*, const char*> wrong[] = {
      {"[{\"a\":1},\n{\"b\":", "line 2: the file ends inside the record that begins here"},
      {"[{\"a\":1},\n", "line 2: the file ends inside its list"},
      {"[{\"a\":1}]\n}", "line 2: unexpected data after the end of the list"},
      {"[{\"a\":1},\n\n,{}]", "line 3: a value was expected in the list"},
      {"{\n\"a\":\"", "line 1: the file ends inside the record that begins here"},
      {"\n\nhello", "line 3: not JSON: expected a list or an object"},
      {"{\n}\n]", "line 3: a value was expected"}};
  for (const auto& [text, message] : wrong) {
    std::string error;
    records_of(text, &error);
    EXPECT_EQ(error, message) << text;
  }
}

TEST(RecordReader, RecordsOverPiecesOfTheFileStayWhole) {
  std::vector<std::string> expected;
  std::string lines, list = "[";
  for (std::size_t i = 0; i < 40; ++i) {
    const std::string record = "{\"n\":\"" + std::string(i * 7'919 % 300'000, 'x') + "\"}";
    lines += record + "\n";
    list += (i > 0 ? ",\n" : "") + record;
    expected.push_back(std::to_string(i + 1) + ":" + record);
  }
  EXPECT_EQ(records_of(lines), expected);
  EXPECT_EQ(records_of(list + "]"), expected);
}

}  // namespace
}  // namespace muniment::cli
