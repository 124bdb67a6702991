// Tests of reports: each is one file, in which an agent's content is inert text. The golden files show complete
// reports; MUNIMENT_ACCEPT=1 rewrites them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cli/chain_check.hpp"
#include "cli/report/data.hpp"
#include "events/entry.hpp"

namespace muniment::cli {
namespace {

constexpr const char* hostile[] = {"<script>alert(1)</script>",
                                   "\"><img src=x onerror=alert(1)>",
                                   "' onmouseover='x",
                                   "&lt;b&gt;",
                                   "<!-- -->",
                                   "]]>",
                                   "[link](javascript:alert(1))",
                                   "![i](http://x/y.png)",
                                   "http://example.com/?a=b",
                                   "www.example.com",
                                   "<http://x>",
                                   "| a | b |\n|---|---|\n# heading",
                                   "**bold** `code` ~~gone~~ ==marked== $x$",
                                   "```\nfence",
                                   "\x1b[31mred\x1b[0m",
                                   "a\u202e"
                                   "b\u2066"
                                   "c",
                                   "\x01\x7f",
                                   "me@example.com",
                                   "- item\n1. item",
                                   "\\",
                                   "\xff\xfe"};

ReportDocument document_with(const std::string& text) {
  ReportDocument report;
  report.title = text;
  report.subtitle = text;
  report.badges = {{text, Mark::warning}};
  report.sections = {{"one",
                      text,
                      {ReportText{"It said: " + text, Mark::bad}, ReportFacts{{{text, text}}},
                       ReportTable{{text, "b"}, {{{text, text}, Mark::bad}}}, ReportList{{"It said: " + text}},
                       ReportCommands{{text}}}}};
  return report;
}

std::size_t count_of(const std::string& text, std::string_view what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST(ReportHtml, WhatWasRecordedMakesNoElementAndNoAttribute) {
  const std::string plain = report_html(document_with("x"));
  for (const char* text : hostile) {
    const std::string html = report_html(document_with(text));
    for (const std::string_view mark : {"<", ">", "\"", "'"})
      EXPECT_EQ(count_of(html, mark), count_of(plain, mark)) << text;
  }
}

TEST(Report, WhatCouldNotBeSeenIsShown) {
  for (const std::string& report : {report_html(document_with("a\u202e"
                                                              "b\x1b[31m\x01\xff")),
                                    report_markdown(document_with("a\u202e"
                                                                  "b\x1b[31m\x01\xff"))}) {
    for (const char c : report) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 || c == '\n') << int{c};
    EXPECT_EQ(report.find("\u202e"), std::string::npos);
    EXPECT_NE(report.find("x1b"), std::string::npos);
  }
}

TEST(ReportHtml, LoadsAndRunsNothing) {
  const std::string html = report_html(document_with("x"));
  for (const std::string_view word :
       {"<script", "<link", "<img", "<iframe", "url(", "@import", "http://", "https://", "javascript:"}) {
    EXPECT_EQ(html.find(word), std::string::npos) << word;
  }
  EXPECT_NE(html.find("default-src 'none'"), std::string::npos);
}

// Outside of indented blocks, where markup has no meaning, every character that Markdown could read as markup is the
// report's own or escaped.
TEST(ReportMarkdown, WhatWasRecordedHasNoMeaning) {
  const std::string plain = report_markdown(document_with("x"));
  for (const char* text : hostile) {
    const std::string report = report_markdown(document_with(text));
    std::string bare;
    bool indented = false;
    for (std::size_t i = 0; i < report.size(); ++i) {
      if (i == 0 || report[i - 1] == '\n') indented = report.compare(i, 4, "    ") == 0;
      if (indented) continue;
      if (report[i] == '\\') {
        ++i;
        bare.push_back('x');
      } else {
        bare.push_back(report[i]);
      }
    }
    for (const std::string_view mark :
         {"*", "_", "[", "]", "(", "<", ">", "`", "~", "|", "!", "&", "@", "$", "#", "://", "www."}) {
      EXPECT_LE(count_of(bare, mark), count_of(plain, mark)) << mark << " in: " << text;
    }
    EXPECT_EQ(count_of(bare, "\n|"), count_of(plain, "\n|")) << text;
    EXPECT_EQ(count_of(bare, "\n-"), count_of(plain, "\n-")) << text;
  }
}

// Adds an event as the daemon returns it, with correct hashes.
void add_event(ChainCheck& chain, std::int64_t seq, std::int64_t run_seq) {
  events::Event event;
  event.seq = seq;
  event.run_seq = run_seq;
  event.run_id = "r1";
  event.run_no = 1;
  event.type = "x.test.noted";
  event.actor = "uid:1000";
  event.salt = Salt{};
  event.body = R"({"n":1})";
  event.body_hash = sha256({view(*event.salt), *event.body});
  event.run_hash = events::hash_entry(Uuid{}, event, chain.run_hash()).run_hash;
  json::Writer out;
  out.begin_object().member("seq", event.seq).member("run_id", event.run_id).member("run_seq", event.run_seq);
  out.member("recorded_at", format_time(event.recorded_at)).member("origin", "reported").member("type", event.type);
  out.member("schema_version", 1).member("actor", event.actor).member("event_id", event.event_id.text());
  out.raw_member("body", *event.body).member("body_hash", to_hex(event.body_hash)).member("salt", to_hex(*event.salt));
  out.member("run_hash", to_hex(event.run_hash)).end_object();
  chain.add(json::parse(out.text())->root());
}

// Returns a small run as the collector does.
ReportData small_run() {
  ReportData data;
  data.written_at = "2026-11-22T07:00:00.000000Z";
  data.run_id = "r1";
  data.log_id = "5050f185-36bb-48f1-9c61-fd5468c61149";
  data.run = {{"status", "ended"},
              {"outcome", "success"},
              {"origin", "reported"},
              {"owner", "uid:1000"},
              {"goal", "find the <bug>"},
              {"started_at", "2026-11-22T06:00:00.000000Z"},
              {"ended_at", "2026-11-22T06:05:00.000000Z"}};
  data.started = {
      {"agent", "demo 2"}, {"client", "muniment.py 0.1.0"}, {"cwd", "/src"}, {"vcs", "commit 12ab, dirty true"}};
  data.end = {"ended", "success", 9};
  data.labels = {{"team", "a|b"}};
  data.chain.emplace(Uuid{}, 1);
  for (const std::int64_t n : {0, 1}) add_event(*data.chain, 3 + 2 * n, n);
  data.custody.origin_line = "muniment.local/" + data.log_id;
  data.custody.size = 12;
  data.custody.root = std::string(64, 'a');
  data.origins = {{"observed", 2}, {"reported", 5}};
  data.actors = {{"uid:1000", 7}};
  data.types = {{"run.started", 1},        {"tool.called", 2},     {"tool.returned", 1},
                {"approval.requested", 1}, {"command.started", 1}, {"command.ended", 1}};
  data.first_seq = 3;
  data.last_seq = 5;
  data.events = 2;
  data.timeline_first = {
      {{"0", "2026-11-22T06:00:00.000000Z", "", "reported", "run.started", "", "run started  demo"}, Mark::none},
      {{"1", "2026-11-22T06:00:01.000000Z", "2026-11-22T05:59:59.000000Z", "reported", "tool.called", "s1",
        "rm  -rf <b>*</b>"},
       Mark::none},
      {{"2", "2026-11-22T06:00:02.000000Z", "", "reported", "tool.returned", "s1", "error"}, Mark::bad}};
  data.tools["rm"] = {2, 0, 1};
  data.models["large-1"] = {.answers = 2,
                            .failed = 1,
                            .without_usage = 1,
                            .input = 1200,
                            .cached = 1000,
                            .output = 34,
                            .cost = {{"USD", 0.0125}}};
  data.commands_started = 1;
  data.commands.add({"3", "$ make test", "c1", "started in /src"});
  data.approvals.add({"4", "asked", "May I delete everything?", "uid:1000", ""});
  data.claims.add({"9", "open", "The tests pass.", "artifact://r1/a"});
  data.evidence.add({"10", "review", "Read and agreed.", std::string(64, 'b'), "", "uid:1000"});
  data.redactions.add({"5", "2026-11-22T06:04:00.000000Z", "event, seq 6", "a name", "GDPR 17", "uid:0"},
                      Mark::warning);
  data.erased = {2};
  data.pending.add({"5", "tool call", "rm (c2)"}, Mark::warning);
  data.recorded_first = *parse_time("2026-11-22T06:00:00Z");
  data.recorded_last = *parse_time("2026-11-22T06:05:00Z");
  data.occurred_first = data.occurred_last = parse_time("2026-11-22T05:59:59Z");
  data.with_occurred = 1;
  return data;
}

void expect_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path path = std::filesystem::path(MUNIMENT_GOLDEN) / "report" / name;
  if (const char* accept = std::getenv("MUNIMENT_ACCEPT"); accept != nullptr && *accept == '1') {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  std::ifstream file(path, std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), text) << path;
}

TEST(Report, OfASmallRunIsTheGoldenOne) {
  const ReportDocument report = report_document(small_run());
  expect_golden("small.html", report_html(report));
  expect_golden("small.md", report_markdown(report));
}

// A word in a name is never broken, whereas a name of 24 or more characters without punctuation is.
TEST(ReportHtml, ANameBreaksAfterPunctuationOnly) {
  ReportDocument report = document_with("x");
  report.sections = {
      {"one", "t", {ReportTable{{{"type", Cell::name}}, {{{"x.claude_code.unreadable"}}, {{std::string(30, 'a')}}}}}}};
  const std::string html = report_html(report);
  EXPECT_NE(html.find("x.<wbr>claude_<wbr>code.<wbr>unreadable<"), std::string::npos);
  EXPECT_NE(html.find(std::string(24, 'a') + "<wbr>aaaaaa<"), std::string::npos);
}

TEST(Report, SaysWhatIsNotProven) {
  ReportData data = small_run();
  data.custody.unproven = "no checkpoint";
  const std::string report = report_markdown(report_document(data));
  EXPECT_NE(report.find("NOT PROVEN"), std::string::npos);
  EXPECT_NE(report.find("NOT proven to be in the log: no checkpoint"), std::string::npos);
  EXPECT_NE(report.find("end not verified"), std::string::npos);
}

TEST(Report, OfALongRunShowsItsEndsAndSaysWhatItLeavesOut) {
  ReportData data = small_run();
  data.types["x.test.noted"] = 1'000'000;
  for (std::size_t i = 0; i < report_rows_max + 7; ++i) data.files.add({std::to_string(i), "modified", "a", "", ""});
  data.timeline_last.push_back({{"1000006", "", "", "", "x.test.noted", "", "the last"}, Mark::none});
  const std::string report = report_markdown(report_document(data));
  EXPECT_NE(report.find("1,000,003 events are not shown here"), std::string::npos);
  EXPECT_NE(report.find("7 more are omitted here"), std::string::npos);
  EXPECT_NE(report.find("the last"), std::string::npos);
}

TEST(ChainCheck, EventsThatFitEachOtherAreCountedAndTheFirstThatDoesNotBreaksIt) {
  ChainCheck chain(Uuid{}, 1);
  add_event(chain, 3, 0);
  add_event(chain, 9, 1);
  EXPECT_FALSE(chain.broken());
  EXPECT_EQ(chain.last_seq(), 9);
  add_event(chain, 11, 3);
  EXPECT_EQ(chain.broken(), "seq 11 (run_seq 3): run_seq 2 was expected");
  EXPECT_EQ(chain.events(), 2);
}

TEST(ChainCheck, AnAnswerThatIsNotAnEventBreaksIt) {
  ChainCheck chain(Uuid{}, 1);
  const std::string text = R"({"seq":3,"run_id":"r1","run_seq":0})";
  chain.add(json::parse(text)->root());
  ASSERT_TRUE(chain.broken());
  EXPECT_EQ(chain.events(), 0);
}

}  // namespace
}  // namespace muniment::cli
