// Tests that an import loses nothing: every string of the source is found byte for byte, every body fits its schema,
// and the same source gives the same events.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <unordered_set>

#include "adapters/import/format.hpp"
#include "adapters/import/formats/formats.hpp"
#include "adapters/import/formats/swe_agent_action.hpp"
#include "adapters/import/spill.hpp"
#include "adapters/import/translate/translation.hpp"
#include "base/crypto/sha256.hpp"
#include "base/ids.hpp"
#include "base/json/json.hpp"
#include "base/json/schema.hpp"
#include "base/limits.hpp"

namespace muniment::cli {
namespace {

const SchemaSet& schemas() {
  static const SchemaSet set = *SchemaSet::embedded();
  return set;
}

// Keeps everything in memory, and performs the daemon's checks of each event.
class MemorySink : public ImportSink {
 public:
  Result<bool> start(const std::string& params) override {
    keep(params);
    started = params;
    return true;
  }
  Result<ImportedArtifact> put(const std::string&, const std::string&, std::string_view bytes) override {
    artifacts.emplace_back(bytes);
    strings.emplace(bytes);
    return ImportedArtifact{make_uuid_v8(bytes).text(), to_hex(sha256(bytes)), static_cast<std::int64_t>(bytes.size())};
  }
  Status append(std::size_t place, const std::vector<ImportedEvent>& batch) override {
    for (const ImportedEvent& event : batch) {
      EXPECT_TRUE(ids.insert(std::to_string(place) + "/" + event.kind).second) << event.kind;
      EXPECT_LE(event.body.size(), 61'440U) << event.type;
      EXPECT_EQ(event.body.find('\n'), std::string::npos) << event.type;
      check(event);
      keep(event.body);
      events.push_back(event);
    }
    return success();
  }
  Status end(const RunEnd& end) override {
    strings.insert(end.summary);
    ended = end;
    return success();
  }

  // Returns whether the text is a string of a body, a member's name or an artifact, or part of one.
  bool holds(const std::string& text) const {
    if (strings.count(text) > 0) return true;
    for (const std::string& kept : strings) {
      if (kept.find(text) != std::string::npos) return true;
    }
    return false;
  }

  std::string started;
  RunEnd ended;
  std::vector<ImportedEvent> events;
  std::vector<std::string> artifacts;
  std::set<std::string> ids;
  std::unordered_set<std::string> strings;

 private:
  void check(const ImportedEvent& event) {
    const auto document = json::parse(event.body);
    ASSERT_TRUE(document.ok()) << event.type << ": " << event.body;
    if (event.type.rfind("x.", 0) == 0) return;
    const auto schema = schemas().find("event/" + event.type);
    ASSERT_TRUE(schema.has_value()) << event.type;
    const Status fits = schema->validate(document->root());
    EXPECT_TRUE(fits.ok()) << event.type << ": " << fits.error().message;
  }
  void keep(const std::string& body) {
    const auto document = json::parse(body);
    ASSERT_TRUE(document.ok()) << body;
    keep_value(document->root());
  }
  void keep_value(const json::Value& value) {
    if (const auto text = value.as_string()) strings.insert(*text);
    for (const json::Value item : value) {
      if (value.is(json::Kind::object)) strings.insert(item.key());
      keep_value(item);
    }
  }
};

void expect_all_strings(const json::Value& value, const MemorySink& sink) {
  if (const auto text = value.as_string()) {
    EXPECT_TRUE(sink.holds(*text)) << "lost: " << text->substr(0, 200);
  }
  for (const json::Value item : value) expect_all_strings(item, sink);
}

SourceFile source_of(const std::string& name, const std::string& text) {
  return SourceFile{name, to_hex(sha256(text)), text};
}

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Imports a trajectory as the importer does, with every text of 8 KiB or more as an artifact.
Status import_swe_agent(const SourceFile& file, ImportSink& sink) {
  const auto translated =
      translate_source(*find_format(swe_agent_format), {.name = file.name, .text = std::string(file.text)});
  if (!translated) return translated.error();
  const TranslatedRun& one = translated->front();
  RETURN_IF_ERROR(sink.start(start_params(one.run, one.source, swe_agent_format)));
  std::vector<ImportedEvent> events = one.run.events;
  for (ImportedEvent& event : events) {
    if (event.body.size() <= limits::spill_part_bytes_max) continue;
    ASSIGN_OR_RETURN(event.body, shrink_body(sink, "r1", event));
  }
  RETURN_IF_ERROR(sink.append(0, events));
  if (!one.run.submission.empty()) RETURN_IF_ERROR(sink.put({}, "text/x-diff", one.run.submission));
  return sink.end(one.run.end);
}

constexpr const char* small_trace = R"({
  "environment": "swe_main",
  "trajectory": [
    {"action": "create a.py\n", "observation": "[File: /r/a.py (1 lines total)]\n1:", "response": "Let me.\n```\ncreate a.py\n```",
     "state": "{\"open_file\": \"n/a\", \"working_dir\": \"/r\"}\n", "thought": "Let me.\n", "colour": {"of": ["un\u00e9\u0001 field"]}},
    {"action": "submit\n", "observation": null, "response": "Done.", "state": "broken", "thought": "Done."}
  ],
  "history": [
    {"role": "system", "content": "You are.", "agent": "primary"},
    {"role": "assistant", "content": "A demonstration.", "agent": "primary", "is_demo": true},
    {"role": "user", "content": "ISSUE:\nIt fails\nbadly", "agent": "primary"},
    {"role": "assistant", "content": "Let me.\n```\ncreate a.py\n```", "thought": "Let me.\n", "action": "another\n", "agent": "primary"},
    {"role": "user", "content": "[File: …", "agent": "primary"},
    {"role": "narrator", "content": "An unknown role.", "agent": "primary"}
  ],
  "info": {"exit_status": "submitted", "submission": "diff --git\n+x\n", "note": "kept",
           "model_stats": {"instance_cost": 0.25, "tokens_sent": 10, "tokens_received": 3}}
})";

TEST(ImportSweAgent, EveryStringIsFoundAlsoOfUnknownFieldsAndRoles) {
  const std::string text = small_trace;
  MemorySink sink;
  ASSERT_TRUE(import_swe_agent(source_of("demo__1", text), sink).ok());
  const auto document = json::parse(text);
  expect_all_strings(document->root(), sink);
  EXPECT_EQ(sink.ended.outcome, "success");
  EXPECT_NE(sink.started.find("\"goal\":\"It fails\""), std::string::npos) << sink.started;
}

TEST(ImportSweAgent, AFileThatTheTraceShowsIsAChange) {
  MemorySink sink;
  const std::string text = small_trace;
  ASSERT_TRUE(import_swe_agent(source_of("demo__1", text), sink).ok());
  std::vector<std::string> changes;
  for (const ImportedEvent& event : sink.events) {
    if (event.type == "file.changed") changes.push_back(event.body);
  }
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0], R"({"path":"/r/a.py","change":"created","call_id":"tool-0001"})");
}

// Returns the body of the last event of a type.
json::Document last_body(const MemorySink& sink, std::string_view type) {
  const auto found = std::find_if(sink.events.rbegin(), sink.events.rend(),
                                  [&](const ImportedEvent& event) { return event.type == type; });
  return *json::parse(found == sink.events.rend() ? std::string_view("{}") : std::string_view(found->body));
}

MemorySink imported(std::string text, const std::string& what = {}, const std::string& by = {}) {
  if (!what.empty()) text.replace(text.find(what), what.size(), by);
  MemorySink sink;
  EXPECT_TRUE(import_swe_agent(source_of("demo__1", text), sink).ok());
  return sink;
}

TEST(ImportSweAgent, WhatItCountsForTheWholeRunIsNoCalls) {
  const MemorySink sink = imported(small_trace);
  EXPECT_FALSE(last_body(sink, "model.answered").root()["usage"].present());
  EXPECT_EQ(sink.ended.usage, R"({"input_tokens":10,"output_tokens":3,"cost":{"amount":0.25,"currency":"USD"}})");
  EXPECT_EQ(imported(small_trace, R"("tokens_sent": 10)", R"("tokens": 10)").ended.usage, "");
  for (const ImportedEvent& event : sink.events) {
    EXPECT_NE(event.type, "manifest.recorded") << "the trace does not say what was in the window";
    EXPECT_NE(event.type, "claim.recorded") << "the trace claims nothing";
  }
}

TEST(ImportSweAgent, OnlyASubmissionOfItsOwnIsASuccess) {
  const std::string own = R"("exit_status": "submitted")";
  EXPECT_EQ(imported(small_trace).ended.outcome, "success");
  EXPECT_EQ(imported(small_trace, own, R"x("exit_status": "submitted (exit_cost)")x").ended.outcome, "unknown");
  EXPECT_EQ(imported(small_trace, own, R"x("exit_status": "submitted (exit_cost)")x").ended.summary,
            "submitted (exit_cost)");
  EXPECT_EQ(imported(small_trace, own, R"("exit_status": "exit_cost")").ended.outcome, "failure");
  EXPECT_EQ(imported(small_trace, own, R"("exit": 0)").ended.outcome, "unknown");
}

TEST(ImportSweAgent, AResultSaysHowItWentWhereItsTextDoes) {
  EXPECT_EQ(tool_status("create", "[File: /r/a.py (1 lines total)]"), "ok");
  EXPECT_EQ(tool_status("find_file", "No matches found for \"a\" in /r"), "ok");
  EXPECT_EQ(tool_status("edit", "Your proposed edit has introduced new syntax error(s). Please"), "error");
  EXPECT_EQ(tool_status("search_dir", "Usage: search_dir"), "error");
  EXPECT_EQ(tool_status("ls", "Usage: ls"), "unknown") << "a command that was asked how it is used";
  EXPECT_EQ(tool_status("python", "Traceback"), "unknown") << "no exit code is shown";
  EXPECT_EQ(tool_status("submit", ""), "unknown");
  EXPECT_EQ(tool_status("python", "/bin/bash: line 1: python: command not found"), "error");
  EXPECT_EQ(tool_status("python", "EXECUTION TIMED OUT"), "timeout");
  EXPECT_EQ(last_body(imported(small_trace), "tool.returned").root()["status"].string_or(""), "unknown")
      << "its observation is null";
  EXPECT_EQ(last_body(imported(small_trace), "step.ended").root()["status"].string_or(""), "unknown");
}

TEST(ImportSweAgent, LargeTextsBecomeArtifactsAndStayWhole) {
  const std::string large(20'000, 'x');
  std::string text = small_trace;
  text.replace(text.find("You are."), 8, large);
  text.replace(text.find("un\\u00e9"), 8, large);
  MemorySink sink;
  ASSERT_TRUE(import_swe_agent(source_of("demo__1", text), sink).ok());
  EXPECT_EQ(sink.artifacts.size(), 3U);  // the message, the field's text, the patch
  expect_all_strings(json::parse(text)->root(), sink);
}

TEST(ImportSweAgent, WhatIsNotATrajectoryIsRefusedBeforeAnythingIsRecorded) {
  for (const char* text : {"[]", "{}", R"({"trajectory": {}, "history": []})", "{"}) {
    MemorySink sink;
    EXPECT_FALSE(import_swe_agent(source_of("demo", text), sink).ok()) << text;
    EXPECT_EQ(sink.started, "") << text;
  }
}

TEST(ImportSweAgent, ATrajectoryWithoutTurnsIsKeptAsItIs) {
  for (const char* text : {R"({"trajectory":[],"history":[1]})", R"({"trajectory":[],"history":[],"info":3})"}) {
    MemorySink sink;
    ASSERT_TRUE(import_swe_agent(source_of("demo", text), sink).ok()) << text;
    ASSERT_EQ(sink.events.size(), 1U) << text;
    EXPECT_EQ(sink.events[0].type, "x.swe_agent.source");
    EXPECT_EQ(sink.events[0].body, std::string(R"({"part":"record","x_source":)") + text + "}");
    EXPECT_EQ(sink.ended.outcome, "unknown");
  }
}

TEST(ImportSweAgent, TheRunIsNamedByTheFileAndItsHash) {
  const std::string hash(64, 'a');
  EXPECT_EQ(imported_run_id({"django__django-1", hash, ""}), "django__django-1-aaaaaaaaaaaa");
  EXPECT_EQ(imported_run_id({"_x y", hash, ""}), "run_x-y-aaaaaaaaaaaa");
  EXPECT_TRUE(check_run_id(imported_run_id({std::string(300, 'z'), hash, ""})).ok());
  EXPECT_TRUE(check_run_id(imported_run_id({"", hash, ""})).ok());
}

// Uses the real traces if they are available: CI fails without them (MUNIMENT_SHARED).
TEST(ImportSweAgent, EveryStringOfEveryRealTraceIsFound) {
  const char* shared = std::getenv("MUNIMENT_SHARED");
  const std::filesystem::path folder =
      std::filesystem::path(shared == nullptr ? "../shared" : shared) / "data/traces/swe-agent";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no traces at " << folder;
  std::size_t traces = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".traj") continue;
    SCOPED_TRACE(entry.path().string());
    const std::string text = read(entry.path());
    const SourceFile source = source_of(entry.path().stem().string(), text);
    MemorySink first;
    ASSERT_TRUE(import_swe_agent(source, first).ok());
    const auto document = json::parse(text);
    expect_all_strings(document->root(), first);
    MemorySink second;
    ASSERT_TRUE(import_swe_agent(source, second).ok());
    EXPECT_EQ(first.ids, second.ids);
    ++traces;
  }
  EXPECT_GE(traces, 50U);
}

}  // namespace
}  // namespace muniment::cli
