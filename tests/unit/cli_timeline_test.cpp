// Tests of timelines: their lines, which are safe to print, and their truncation.
#include "cli/show/timeline.hpp"

#include <gtest/gtest.h>

#include "client/arguments.hpp"

namespace muniment::cli {
namespace {

constexpr const char* observed_run =
    R"({"run_id":"r1","status":"open","origin":"reported","started_at":"2026-11-21T10:00:00.000000Z"})";

// Standard output of a test is not a terminal: no colours, 100 columns.
std::string timeline_of(const std::vector<std::string>& events, TimelineOptions options = {},
                        const char* run_text = observed_run, Estimates estimates = {}) {
  const auto run = json::parse(run_text);
  const Output out = Output::to_stdout(false);
  testing::internal::CaptureStdout();
  Timeline timeline(out, run->root(), options, std::move(estimates));
  for (const std::string& text : events) {
    const auto event = json::parse(text);
    EXPECT_TRUE(event.ok()) << text;
    timeline.add(event->root());
  }
  timeline.finish();
  std::fflush(stdout);
  return testing::internal::GetCapturedStdout();
}

std::string event(int run_seq, const std::string& type, const std::string& body, const std::string& more = "") {
  return "{\"run_seq\":" + std::to_string(run_seq) + ",\"type\":\"" + type + "\",\"recorded_at\":\"2026-11-21T10:00:0" +
         std::to_string(run_seq % 10) + ".500000Z\"" + more + ",\"body\":" + body + "}";
}

TEST(Timeline, ACallAndItsResultAreOneLineAlsoWithQuietEventsBetween) {
  const std::string text = timeline_of({
      event(1, "tool.called",
            R"({"call_id":"c1","name":"open","kind":"function","arguments":{"action":"open a.py\n"}})"),
      event(2, "artifact.stored", R"({"path":"runs/x","size_bytes":9})"),
      event(3, "tool.returned", R"({"call_id":"c1","status":"ok","content":[{"type":"text","content":"abcd"}]})"),
  });
  EXPECT_EQ(text,
            "   +1.50s  ▸ open a.py  → ok 2.0 s 4 B\n\n1 quiet event (manifests, artifacts, snapshots, …): "
            "--full shows all\n");
}

TEST(Timeline, AResultThatStandsAloneNamesItsCall) {
  const std::string text = timeline_of({
      event(1, "tool.called", R"({"call_id":"c1","name":"a","kind":"function"})"),
      event(2, "tool.called", R"({"call_id":"c2","name":"b","kind":"function"})"),
      event(3, "tool.returned", R"({"call_id":"c1","status":"error","content":[],"error":{"message":"no"}})"),
  });
  EXPECT_EQ(text, "   +1.50s  ▸ a\n   +2.50s  ▸ b\n   +3.50s  → a: error 2.0 s 0 B no\n");
}

TEST(Timeline, ResultsOfParallelCallsNameThemAndTellEqualOnesApart) {
  const std::string text = timeline_of({
      event(1, "tool.called", R"({"call_id":"c1","name":"read","kind":"function","arguments":{"path":"a.py"}})"),
      event(2, "tool.called", R"({"call_id":"c2","name":"read","kind":"function","arguments":{"path":"b.py"}})"),
      event(3, "tool.called", R"({"call_id":"c3","name":"read","kind":"function","arguments":{"path":"b.py"}})"),
      event(4, "tool.returned", R"({"call_id":"c1","status":"ok","content":[],"duration_us":12400000})"),
      event(5, "tool.returned", R"({"call_id":"c3","status":"ok","content":[],"duration_us":5})"),
      event(6, "tool.returned", R"({"call_id":"unseen","status":"ok","content":[]})"),
  });
  EXPECT_NE(text.find("→ read a.py: ok 12.4 s 0 B\n"), std::string::npos) << text;
  EXPECT_NE(text.find("→ read b.py [c3]: ok 5 µs 0 B\n"), std::string::npos) << text;
  EXPECT_NE(text.find("→ ok 0 B\n"), std::string::npos) << text;
}

TEST(Timeline, AnImportedResultHasNoDurationThatNobodyRecorded) {
  const char* const imported = R"({"run_id":"r1","origin":"imported","started_at":"2026-11-21T10:00:00.000000Z"})";
  const std::string text = timeline_of({event(1, "tool.called", R"({"call_id":"c1","name":"a","kind":"function"})"),
                                        event(3, "tool.returned", R"({"call_id":"c1","status":"ok","content":[]})")},
                                       {}, imported);
  EXPECT_EQ(text, "       #1  ▸ a  → ok 0 B\n");
}

TEST(Timeline, AnEstimatedCostIsMarkedAndItsPriceListNamed) {
  const auto answer = [](const std::string& call, const std::string& more) {
    return R"({"call_id":")" + call +
           R"(","status":"ok","model":"m","finish_reasons":[],"content":[{"type":"text","content":"hi"}],"usage":{"input_tokens":1000,"output_tokens":500)" +
           more + "}}";
  };
  const std::vector<std::string> events = {
      event(1, "model.called", R"({"call_id":"m1","model":"m"})"),
      event(2, "model.answered", answer("m1", ""), R"(,"seq":12)"),
      event(3, "model.answered", answer("m2", ""), R"(,"seq":13)"),
      event(4, "model.answered", answer("m3", R"(,"cost":{"amount":0.5,"currency":"USD"})"), R"(,"seq":14)"),
      event(5, "model.answered", answer("m4", ""), R"(,"seq":15)"),
  };
  const std::string text = timeline_of(events, {}, observed_run, {{{12, 0.0075}, {13, 0.0075}}, "0123456789ab"});
  EXPECT_NE(text.find("1,000 in · 500 out · ≈0.0075 USD hi"), std::string::npos) << text;
  EXPECT_NE(text.find("1,000 in · 500 out · 0.50 USD hi"), std::string::npos) << text;
  EXPECT_NE(text.find("≈0.0150 USD: 2 answers of models by the prices of the daemon, version 0123456789ab\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(timeline_of(events).find("≈"), std::string::npos);
}

TEST(Timeline, EventsOfAStepStandBelowIt) {
  const std::string step = R"(,"step_id":"s1")";
  const std::string text = timeline_of({
      event(1, "step.started", R"({"name":"turn 1","kind":"turn"})", step),
      event(2, "thought.recorded", R"({"content":[{"type":"reasoning","content":"I think\nso"}]})", step),
      event(3, "step.ended", R"({"status":"ok"})", step),
      event(4, "message.added", R"({"message_id":"m","role":"user","content":[{"type":"text","content":"hi"}]})"),
  });
  EXPECT_EQ(text.substr(0, text.find("\n\n")), "   +1.50s  ▾ turn 1\n   +2.50s    … I think so\n   +4.50s  › user hi");
}

TEST(Timeline, ARepeatedStartOfAStepShowsItsAttempt) {
  const std::string step = R"(,"step_id":"s1")";
  const std::string text = timeline_of({
      event(1, "step.started", R"({"name":"charge","kind":"node"})", step),
      event(2, "step.started", R"({"name":"charge","kind":"node","attempt":2})", step),
      event(3, "run.interrupted", R"({"log_seq":2})"),
      event(4, "step.started", R"({"name":"charge","kind":"node","attempt":3})", step),
  });
  EXPECT_NE(text.find("▾ charge\n   +2.50s  ▾ charge attempt 2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("↻ charge continues after the interruption attempt 3"), std::string::npos) << text;
}

// The new daemon appends the interruption to the run only after the run has begun another step.
TEST(Timeline, OnlyAStepThatWasBegunBeforeTheInterruptionGoesOnAfterIt) {
  const auto step = [](int seq, const std::string& type, const std::string& name, const std::string& id) {
    return event(seq, type, "{\"name\":\"" + name + "\",\"kind\":\"turn\"}",
                 ",\"step_id\":\"" + id + "\",\"seq\":" + std::to_string(seq));
  };
  const std::string text = timeline_of({
      step(1, "step.started", "turn 1", "a"),
      step(3, "step.started", "turn 2", "b"),
      event(4, "run.interrupted", R"({"log_seq":2})", ",\"seq\":4"),
      step(5, "step.started", "turn 2", "c"),
      step(6, "step.started", "turn 1", "d"),
  });
  const std::size_t first = text.find("continues after the interruption");
  EXPECT_EQ(text.substr(text.rfind('\n', first) + 1).find("turn 1") == std::string::npos, false) << text;
  EXPECT_EQ(text.find("continues after the interruption", first + 1), std::string::npos) << text;
}

TEST(Timeline, EscapesAndDirectionMarksAreShownAndNotObeyed) {
  const std::string text =
      timeline_of({event(1, "error.raised", "{\"error_type\":\"E\",\"message\":\"\\u001b[2Jred\\u202e\"}")});
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
  EXPECT_EQ(text.find("\xe2\x80\xae"), std::string::npos) << text;
  EXPECT_NE(text.find("\\x1b[2Jred"), std::string::npos) << text;
}

TEST(Timeline, OnlyErrorsAreShownWhenAskedFor) {
  TimelineOptions options;
  options.errors = true;
  const std::string text = timeline_of(
      {
          event(1, "tool.called", R"({"call_id":"a","name":"good","kind":"function"})"),
          event(1, "tool.returned", R"({"call_id":"a","status":"ok","content":[]})"),
          event(1, "tool.called", R"({"call_id":"b","name":"bad","kind":"function"})"),
          event(1, "tool.returned", R"({"call_id":"b","status":"timeout","content":[]})"),
          event(2, "command.ended", R"({"call_id":"c","exit_code":0})"),
          event(3, "command.ended", R"({"call_id":"d","exit_code":2,"stderr":{"size_bytes":2048}})"),
          event(4, "run.halted", R"({"code":"SYSTEM_ERROR","reason":"missing","pointer":"artifact://r1/a"})"),
      },
      options);
  EXPECT_EQ(
      text,
      "   +1.50s  ▸ bad  → timeout 0 B\n   +3.50s  → exit 2 2.0 KiB stderr\n   +4.50s  ■ HALTED SYSTEM_ERROR missing artifact://r1/a\n");
}

TEST(Timeline, AnImportedEventShowsItsPlaceAndNotTheTimeOfTheImport) {
  const std::string text =
      timeline_of({event(7, "message.added", R"({"role":"user","content":[{"type":"text","content":"hi"}]})")}, {},
                  R"({"run_id":"r1","origin":"imported","started_at":"2026-11-21T10:00:00.000000Z"})");
  EXPECT_EQ(text, "       #7  › user hi\n");
}

TEST(Timeline, WhatIsErasedIsSaid) {
  const std::string text = timeline_of({R"({"run_seq":1,"type":"message.added","body":null,"redacted":true})"});
  EXPECT_EQ(text, "       #1  ▒ message.added redacted\n");
}

TEST(Timeline, WithFullEveryEventIsShownWithItsText) {
  TimelineOptions options;
  options.full = true;
  const std::string text =
      timeline_of({event(1, "manifest.recorded", R"({"manifest_id":"m1"})"),
                   event(2, "message.added", R"({"role":"user","content":[{"type":"text","content":"one\ntwo"}]})")},
                  options);
  EXPECT_NE(text.find("manifest m1"), std::string::npos) << text;
  EXPECT_NE(text.find("one\n"), std::string::npos) << text;
  EXPECT_NE(text.find("two\n"), std::string::npos) << text;
}

TEST(Fit, TextIsCutAtCharactersAndCountsColumns) {
  EXPECT_EQ(fit("abc", 3), "abc");
  EXPECT_EQ(fit("abcd", 3), "ab…");
  EXPECT_EQ(fit("ééééé", 3), "éé…");
  EXPECT_EQ(columns_of("\x1b[31méa\x1b[0m"), 2U);
}

TEST(Arguments, JsonOfSeveralLinesBecomesOneAndLabelsAnObject) {
  EXPECT_EQ(*json_line("{\n \"a\": 1\n}"), "{  \"a\": 1 }");
  EXPECT_FALSE(json_line("{\"a\": \"x\ny\"}").ok());
  EXPECT_EQ(*labels_json({"a=b", "c=d=e"}), R"({"a":"b","c":"d=e"})");
  EXPECT_FALSE(labels_json({"=b"}).ok());
}

}  // namespace
}  // namespace muniment::cli
