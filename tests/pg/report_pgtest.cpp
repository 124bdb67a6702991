// Tests of the report tables and their views: each start event is paired with its end for any division into batches,
// sums agree with the events, and after erasures and rebuilds the tables agree with the remaining log.
#include <gtest/gtest.h>

#include <pqxx/pqxx>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include "events/catalogue.hpp"
#include "support/report_fixture.hpp"

namespace muniment::store {
namespace {

using test::ask_sql;
using test::run_sql;

TEST_F(Report, ACallIsJoinedWithItsResultInOneBatchAndAcrossBatches) {
  const auto run = start_run("r1");
  call_tool(run, "c1");
  return_tool(run, "c1", "timeout");
  follow();  // one batch, from the table
  catch_up();
  EXPECT_EQ(ask("SELECT run_id || tool || kind || status || duration_us FROM report.tool_call"),
            "r1grepfunctiontimeout1500");
  call_tool(run, "c2");
  catch_up();
  EXPECT_EQ(ask("SELECT status FROM report.tool_call WHERE call_id = 'c2'"), "pending");
  EXPECT_EQ(ask("SELECT returned_at FROM report.tool_call WHERE call_id = 'c2'"), "");
  return_tool(run, "c2");
  catch_up();
  EXPECT_EQ(ask("SELECT status FROM report.tool_call WHERE call_id = 'c2'"), "ok");
  EXPECT_EQ(ask("SELECT tool_calls || ' ' || tool_errors FROM report.run_report"), "2 1");
  expect_as_the_log_says();
}

TEST_F(Report, AResultWithoutACallStandsAlone) {
  follow();
  const auto run = start_run("r1");
  return_tool(run, "c1");
  call_tool(run, "c1");
  catch_up();
  EXPECT_EQ(ask("SELECT count(*) FROM report.tool_call"), "2");
  EXPECT_EQ(ask("SELECT count(*) FROM report.tool_call WHERE called_seq IS NULL AND tool IS NULL AND status = 'ok'"),
            "1");
  EXPECT_EQ(ask("SELECT status FROM report.tool_call WHERE called_seq IS NOT NULL"), "pending");
  EXPECT_EQ(ask("SELECT tool_calls FROM report.run_report"), "2");
}

TEST_F(Report, AnIdThatIsUsedAgainEndsTheNewestCall) {
  follow();
  const auto run = start_run("r1");
  call_tool(run, "c1", R"(,"attempt":1)");
  call_tool(run, "c1", R"(,"attempt":2)");
  catch_up();
  return_tool(run, "c1");
  return_tool(run, "c1", "error");
  catch_up();
  EXPECT_EQ(ask("SELECT string_agg(attempt || status, ' ' ORDER BY called_seq) FROM report.tool_call"), "1error 2ok");
  call_tool(start_run("r2"), "c1");
  catch_up();
  EXPECT_EQ(ask("SELECT status FROM report.tool_call WHERE run_id = 'r2'"), "pending") << "another run's";
  expect_as_the_log_says();
}

TEST_F(Report, TokensAndCostsAreSummedExactly) {
  follow();
  const auto run = start_run("r1");
  for (int i = 0; i < 10; ++i) {
    answer_model(run, "m" + std::to_string(i),
                 R"({"input_tokens":7,"output_tokens":3,"reasoning_tokens":2,"cost":{"amount":0.1,"currency":"USD"}})");
    if (i == 4) catch_up();
  }
  catch_up();
  EXPECT_EQ(
      ask("SELECT concat_ws(' ', model_calls, input_tokens, output_tokens, reasoning_tokens, cost, currency) FROM report.run_report"),
      "10 70 30 20 1.0 USD");
  EXPECT_EQ(
      ask("SELECT DISTINCT concat_ws(' ', model, answered_model, provider, operation, status, finish_reason) FROM report.model_call"),
      "m-1 m-1-0613 p chat ok stop");
  answer_model(run, "e", R"({"input_tokens":0,"output_tokens":0,"cost":{"amount":"2.5","currency":"EUR"}})");
  catch_up();
  EXPECT_EQ(ask("SELECT coalesce(cost::text, '-') || currency FROM report.run_report"), "-mixed");
  expect_as_the_log_says();
}

TEST_F(Report, NumbersThatNoTableHoldsDoNotStopTheFollower) {
  follow();
  const auto run = start_run("r1");
  answer_model(run, "m",
               R"({"input_tokens":9223372036854775807,"output_tokens":1,"cost":{"amount":1e300,"currency":"USD"}})");
  call_tool(run, std::string(256, 'c'));
  return_tool(run, std::string(256, 'c'));
  catch_up();
  EXPECT_EQ(ask("SELECT concat_ws(' ', input_tokens, output_tokens, cost, tool_calls) FROM report.run_report"), "1 1")
      << "neither the tokens that were read nor the cost are known";
}

TEST_F(Report, TextsThatLookLikeSyntaxAreKeptAsTheyAre) {
  follow();
  const auto run = start_run("r1");
  const std::string id = R"(a\\b\t{,\"NULL\"} \\N)";  // the JSON encoding
  append(run, "tool.called", R"({"call_id":")" + id + R"(","name":"\\N","kind":"function"})");
  catch_up();
  append(run, "tool.returned",
         R"({"call_id":")" + id + R"(","status":"error","content":[],"error":{"error_type":"x,\"y\\","message":"m"}})");
  catch_up();
  EXPECT_EQ(ask("SELECT call_id || '|' || tool || '|' || error_type FROM report.tool_call"),
            "a\\b\t{,\"NULL\"} \\N|\\N|x,\"y\\");
  expect_as_the_log_says();
}

TEST_F(Report, NothingIsCountedTwiceAfterARestart) {
  follow();
  const auto run = start_run("r1");
  call_tool(run, "c1");
  catch_up();
  stop_all();
  open_log();
  const auto loaded = reader->load_run("r1");
  ASSERT_TRUE(loaded && *loaded);
  const auto again = runs->insert(*loaded);
  return_tool(again, "c1");
  follow();
  catch_up();
  EXPECT_EQ(ask("SELECT concat_ws(' ', events, tool_calls, last_seq) FROM report.run_report"),
            "3 1 " + std::to_string(tail->next_seq() - 1));
  expect_as_the_log_says();
}

TEST_F(Report, AnEndReadsTheSpanThatItEndsAndNoOthers) {
  follow();
  const auto run = start_run("r1");
  call_tool(run, "c1");
  catch_up();
  // Earlier spans, of which the statistics of the table know nothing.
  run_sql(uri,
          "ALTER TABLE report_span_tool SET (autovacuum_enabled = false); "
          "INSERT INTO report_span_tool (log_no, kind, seq, run_no, key, origin, began_seq, began_at, ended_seq) "
          "SELECT 1, 'tool', n, 1, 'c', 2, n, now(), n + 1 FROM generate_series(1000000, 1020000) n");
  return_tool(run, "c1");
  catch_up();
  const std::string counts = "FROM pg_stat_user_tables WHERE relname = 'report_span_tool'";
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (ask("SELECT n_tup_upd " + counts) == "0" && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LT(std::stoi(ask("SELECT seq_tup_read + idx_tup_fetch " + counts)), 10'000);
  EXPECT_EQ(ask("SELECT status FROM report.tool_call WHERE call_id = 'c1'"), "ok");
}

TEST_F(Report, WhatSomebodyChangedIsFoundAndPutRight) {
  follow();
  const auto run = start_run("r1");
  answer_model(run, "m", R"({"input_tokens":1,"output_tokens":1})");
  append(run, "error.raised", R"({"error_type":"E","message":"m"})");
  catch_up();
  run_sql(
      uri,
      "UPDATE report_run SET input_tokens = 1000000; DELETE FROM report_span; UPDATE report_place SET type = 'file.read'");
  for (const RebuiltTable& table : rebuilt()) EXPECT_TRUE(!table.equal() && table.replaced) << table.name;
  expect_as_the_log_says();
  EXPECT_EQ(ask("SELECT input_tokens FROM report.run_report"), "1");
}

TEST_F(Report, WhatIsErasedIsGoneFromTablesAndSums) {
  follow();
  const auto run = start_run("r1");
  const std::int64_t answered =
      answer_model(run, "m1", R"({"input_tokens":5,"output_tokens":5,"cost":{"amount":1,"currency":"EUR"}})");
  answer_model(run, "m2", R"({"input_tokens":7,"output_tokens":7,"cost":{"amount":2,"currency":"USD"}})");
  catch_up();
  erase(run, answered);
  EXPECT_EQ(ask("SELECT concat_ws(' ', model_calls, input_tokens, cost, currency) FROM report.run_report"), "2 7 2 USD")
      << "in the erasure's own transaction";
  EXPECT_EQ(ask("SELECT status || coalesce(answered_model, '-') FROM report.model_call WHERE call_id = 'm1'"),
            "unknown-")
      << "what answered it is not known any more";
  erase(run, answered - 1);
  EXPECT_EQ(ask("SELECT count(*) FROM report.model_call"), "1");
  EXPECT_EQ(ask("SELECT count(*) FROM report_span WHERE key = 'm1'"), "0");
  erase(run, answered + 1);
  EXPECT_EQ(ask("SELECT model || coalesce(provider, '-') || input_tokens FROM report.model_call"), "m-1-0613-7")
      << "the answer alone, by what it says itself";
  catch_up();
  EXPECT_EQ(ask("SELECT concat_ws(' ', model_calls, input_tokens) FROM report.run_report"), "1 7");
  expect_as_the_log_says();
}

TEST_F(Report, WhatNobodySaysIsNull) {
  follow();
  const auto run = start_run("r1");
  append(run, "model.called", R"({"call_id":"m","operation":"chat","provider":"p","model":"m","parameters":{}})");
  append(run, "model.answered", R"({"call_id":"m","status":"unknown","model":"m","finish_reasons":[],"content":[]})");
  call_tool(run, "t");
  return_tool(run, "t", "unknown");
  append(run, "step.started", R"({"name":"s","kind":"turn"})");
  append(run, "step.ended", R"({"status":"unknown"})");
  catch_up();
  const std::string sums =
      "SELECT concat_ws(' ', model_errors, tool_errors, coalesce(input_tokens, output_tokens, cached_input_tokens, reasoning_tokens, cost)::text, currency) FROM report.run_report";
  EXPECT_EQ(ask(sums), "0 0") << "neither failed, and nothing was counted";
  EXPECT_EQ(ask("SELECT count(*) FROM report.error_report"), "0");
  EXPECT_EQ(ask("SELECT status FROM report.tool_call"), "unknown");
  expect_as_the_log_says();
}

TEST_F(Report, WhatASourceCountsForARunIsTheRunsAndNoCalls) {
  follow();
  const auto whole = start_run("r1");
  append(
      whole, "run.ended",
      R"({"outcome":"unknown","usage":{"input_tokens":10,"output_tokens":3,"cost":{"amount":2.5e-1,"currency":"USD"}}})");
  const auto both = start_run("r2");
  answer_model(both, "m", R"({"input_tokens":7,"output_tokens":1})");
  const std::int64_t ended =
      append(
          both, "run.ended",
          R"({"outcome":"success","usage":{"input_tokens":100,"output_tokens":100,"cost":{"amount":"much","currency":"EUR"}}})")
          .seq;
  catch_up();
  const std::string usage =
      "SELECT concat_ws(' ', input_tokens, output_tokens, cost, currency) FROM report.run_report WHERE run_id = ";
  EXPECT_EQ(ask(usage + "'r1'"), "10 3 0.25 USD");
  EXPECT_EQ(ask(usage + "'r2'"), "7 1 EUR") << "the calls' own numbers stand, and an amount that is no number is none";
  EXPECT_EQ(ask("SELECT count(*) FROM report.model_call WHERE input_tokens = 10"), "0");
  erase(both, ended);
  EXPECT_EQ(ask(usage + "'r2'"), "7 1");
  catch_up();
  expect_as_the_log_says();
}

TEST_F(Report, TheLagTellsHowFarTheViewsAreBehindAndTheWaitEndsWithIt) {
  follow();
  const auto run = start_run("r1");
  catch_up();
  const std::string behind = "SELECT sum(events_behind) || ' ' || count(oldest_unseen_at) FROM report.lag";
  EXPECT_EQ(ask(behind), "0 0");
  EXPECT_EQ(ask("SELECT report.wait()"), "0");
  {
    const Follower::Pause hold(*follower);
    call_tool(run, "c1");
    EXPECT_EQ(ask("SELECT events_behind FROM report.lag WHERE follower = 'report'"), "1");
    EXPECT_EQ(ask("SELECT report.wait('50 ms')"), "1") << "it was held";
    EXPECT_EQ(ask("SELECT report.wait('0 s')"), "1");
    EXPECT_EQ(ask("SELECT tool_calls FROM report.run_report"), "0");
  }
  EXPECT_EQ(ask("SELECT report.wait('20 s')"), "0");
  EXPECT_EQ(ask("SELECT tool_calls FROM report.run_report"), "1");
  EXPECT_THROW(ask("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT report.wait()"), pqxx::sql_error)
      << "it would wait in vain";
}

TEST_F(Report, WhatIsReadAfterItWasErasedAndWhatIsReadBeforeComeToTheSame) {
  const auto run = start_run("r1");
  const std::int64_t answered = answer_model(run, "m1", R"({"input_tokens":5,"output_tokens":5})");
  append(run, "event.redacted", R"({"seq":)" + std::to_string(answered) + R"(,"reason":"r","by":"uid:0"})");
  follow();  // the follower reads the body, which is not erased yet, and then the announcement
  catch_up();
  EXPECT_EQ(ask("SELECT coalesce(input_tokens::text, 'NULL') FROM report.run_report"), "NULL");
  Connection redactor(uri, DatabaseRole::redactor);
  ASSERT_TRUE(erase_copies(redactor, 1, run->view().run_no, {answered}, {}, std::nullopt));
  expect_as_the_log_says();
}

// Random calls in random batches, some of them erased: the tables always equal those of a rebuild from the log.
TEST_F(Report, HoweverEventsComeAndGoTheTablesAreWhatTheLogSays) {
  std::mt19937 random(7);
  const auto any = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  follow();
  std::vector<std::shared_ptr<store::Run>> open;
  for (int i = 0; i < 3; ++i) open.push_back(start_run("r" + std::to_string(i)));
  std::vector<std::pair<std::shared_ptr<store::Run>, std::int64_t>> said;
  const char* const statuses[] = {"ok", "error", "denied"};
  for (int i = 0; i < 400; ++i) {
    const auto& run = open[static_cast<std::size_t>(any(3))];
    const std::string id = "c" + std::to_string(i / 4 + any(3));
    const std::string status = statuses[any(3)];
    std::int64_t seq = -1;
    switch (any(6)) {
      case 0:
        seq = append(run, "tool.called",
                     R"({"call_id":")" + id + "." + std::to_string(i) + R"(","name":"t","kind":"mcp","server":"s"})")
                  .seq;
        break;
      case 1:
        seq = append(run, "tool.returned",
                     R"({"call_id":")" + id + "." + std::to_string(i - 1 - any(8)) + R"(","status":")" + status +
                         R"(","content":[]})")
                  .seq;
        break;
      case 2:
        seq = answer_model(run, id + "." + std::to_string(i),
                           R"({"input_tokens":)" + std::to_string(any(100)) +
                               R"(,"output_tokens":1,"cost":{"amount":0.01,"currency":")" + (any(9) ? "USD" : "EUR") +
                               "\"}}");
        break;
      case 3: seq = append(run, "error.raised", R"({"error_type":"E","message":"m"})").seq; break;
      case 4:
        append(
            run, any(2) ? "step.started" : "step.ended",
            any(2) ? R"({"name":"n","kind":"turn","status":"ok"})" : R"({"name":"n","kind":"node","status":"error"})");
        break;
      default:
        if (any(4) == 0) catch_up();
    }
    if (seq >= 0) said.emplace_back(run, seq);
    if (any(12) == 0 && !said.empty()) {
      const auto at = static_cast<std::size_t>(any(static_cast<int>(said.size())));
      erase(said[at].first, said[at].second);
      said.erase(said.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  catch_up();
  expect_as_the_log_says();
  EXPECT_EQ(ask("SELECT count(*) > 0 FROM report_span WHERE began_seq IS NULL"), "t");
  EXPECT_EQ(ask("SELECT count(*) > 9 FROM event WHERE salt IS NULL"), "t");
}

TEST_F(Report, EveryViewAnswersAndShowsOnlyTheRunsThatAreShown) {
  follow();
  for (const char* id : {"r1", "r2"}) {
    const auto run = start_run(id, id == std::string("r2") ? "r1" : "");
    append_some_of_each(run, id);
    append(run, "run.halted", R"({"code":"SYSTEM_ERROR","reason":"gone","pointer":"p","attempts":2})");
  }
  catch_up();
  std::istringstream views(ask(
      "SELECT string_agg(table_name, ' ' ORDER BY table_name) FROM information_schema.views WHERE table_schema = 'report'"));
  std::set<std::string> seen;
  for (std::string view; views >> view;) {
    seen.insert(view);
    if (view == "storage_report" || view == "lag" || view == "document_report" || view == "price") continue;
    const auto shown = [&](const std::string& only) {
      return ask("SET ROLE " + ask("SELECT muniment_role('reporter')") + "; SET muniment.runs = '" + only +
                 "'; SELECT string_agg(DISTINCT run_id, ' ' ORDER BY run_id) FROM report." + view);
    };
    EXPECT_EQ(shown(""), "r1 r2") << view;
    EXPECT_EQ(shown("r2"), "r2") << view;
    EXPECT_EQ(shown("r3"), "") << view;
  }
  // Rows of the whole log, such as queries outside of runs, are shown to users who see all runs.
  run_sql(
      uri,
      "INSERT INTO report_place SELECT log_no, 'retrieval.answered', seq, 0 FROM event WHERE type = 'retrieval.answered' AND run_no = 1 "
      "ON CONFLICT (log_no, type, seq) DO UPDATE SET run_no = 0");
  const std::string queries = "SELECT count(*) || ' ' || count(run_id) FROM report.retrieval_report";
  EXPECT_EQ(ask(queries), "8 7");
  EXPECT_EQ(ask("SET muniment.runs = 'r2'; " + queries), "4 4");
  EXPECT_EQ(
      ask("SELECT string_agg(concat_ws(' ', type, branch, query, pointers, pointer_count, bad ->> 'VERSION_MISMATCH'), ', ' ORDER BY seq) FROM report.retrieval_report WHERE run_id = 'r2'"),
      R"(retrieval.answered q ["x"] 1, context.built where ["ev://memory/home#p0?v=1"] 1, pointer.validated b ["p"] 2 1, artifact.read ["artifact://r1/a"] 1)");
  EXPECT_EQ(
      ask("SELECT concat_ws(' ', question, passages, pointers, left_out, used, unit) FROM report.recall_report WHERE run_id = 'r2'"),
      R"(where 1 ["ev://memory/home#p0?v=1"] 2 9 tokens)");
  EXPECT_EQ(
      ask("SELECT concat_ws(' ', task_id, completing, can_complete, verdict, reason, codes, evidence_ids) FROM report.task_validation WHERE run_id = 'r2'"),
      R"(t t f fail old ["stale"] [])");
  EXPECT_EQ(seen, (std::set<std::string>{"approval_report", "artifact_report", "audit_report",  "claim_report",
                                         "command_report",  "document_report", "error_report",  "event_log",
                                         "evidence_report", "feedback_report", "file_report",   "lag",
                                         "model_call",      "price",           "recall_report", "retrieval_report",
                                         "run_report",      "run_tree",        "step_report",   "storage_report",
                                         "task_report",     "task_validation", "tool_call",     "cloud_report",
                                         "cost_report"}));
  EXPECT_EQ(ask("SELECT string_agg(kind, ' ' ORDER BY kind) FROM report.error_report WHERE run_id = 'r1'"),
            "command halt");
  EXPECT_EQ(
      ask("SELECT string_agg(concat_ws(' ', status, reason, response_hash), ', ' ORDER BY seq) FROM report.cloud_report WHERE run_id = 'r2'"),
      "answered r, refused secret");
  EXPECT_EQ(ask("SELECT root_run_id || depth || path::text FROM report.run_tree WHERE run_id = 'r2'"), "r11{r1,r2}");
  EXPECT_EQ(
      ask("SELECT artifacts || ' ' || artifact_bytes || ' ' || halt_code FROM report.run_report WHERE run_id = 'r1'"),
      "1 5 SYSTEM_ERROR");
  EXPECT_EQ(ask("SELECT arguments::text FROM report.tool_call WHERE run_id = 'r1'"), "");
  EXPECT_EQ(ask("SELECT argv || status FROM report.command_report WHERE run_id = 'r1'"), "[\"false\"]error");
  EXPECT_EQ(ask("SELECT count(*) > 9 FROM report.storage_report WHERE size_bytes > 0"), "t");
}

TEST(ReportViews, EveryViewAndColumnSaysWhatItIs) {
  EXPECT_EQ(
      ask_sql(
          test::fresh_database(),
          "SELECT string_agg(c.relname || coalesce('.' || a.attname, ''), ' ') FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 "
          "WHERE c.relnamespace = 'report'::regnamespace AND (col_description(c.oid, a.attnum) IS NULL OR obj_description(c.oid, 'pg_class') IS NULL)"),
      "");
}

// Every view and table that the catalogue of event types names exists, and the view reads the table or lists the type.
TEST(ReportViews, HoldTheTypesThatTheCatalogueNames) {
  const std::string uri = test::fresh_database();
  for (const events::TypeInfo& type : events::catalogue()) {
    SCOPED_TRACE(type.name);
    std::vector<std::string> signs = {"'" + std::string(type.name) + "'::text"};
    std::istringstream tables{std::string(type.tables)};
    for (std::string table; tables >> table;) {
      EXPECT_EQ(ask_sql(uri, "SELECT count(*) FROM pg_tables WHERE tablename = '" + table + "'"), "1") << table;
      if (table != "report_place") signs.push_back("public." + table);
    }
    std::istringstream views{std::string(type.views)};
    for (std::string view; views >> view;) {
      // With the definitions of the views that it reads.
      const std::string text =
          ask_sql(uri,
                  "SELECT string_agg(pg_get_viewdef(c.oid), ' ') FROM pg_class c WHERE c.relkind = 'v' AND (c.oid = "
                  "to_regclass('report." +
                      view + "') OR strpos(pg_get_viewdef(to_regclass('report." + view + "')), c.relname) > 0)");
      EXPECT_NE(text, "") << "no view " << view;
      const bool held = type.tables.empty() || std::ranges::any_of(signs, [&](const std::string& sign) {
                          return text.find(sign.substr(sign.find('.') + 1)) != std::string::npos;
                        });
      EXPECT_TRUE(held) << view << " reads none of " << type.tables;
    }
  }
}

// Columns are only ever added: MUNIMENT_ACCEPT=1 records new ones, but never removes one.
TEST(ReportViews, ColumnsAndTheirTypesStay) {
  std::istringstream there(ask_sql(
      test::fresh_database(),
      "SELECT string_agg(c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod), E'\\n' ORDER BY c.relname, a.attnum) "
      "FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 WHERE c.relnamespace = 'report'::regnamespace"));
  const std::string file = std::string(MUNIMENT_SOURCE_ROOT) + "/schema/sql/report_columns.txt";
  std::set<std::string> columns, promised;
  for (std::string line; std::getline(there, line);) columns.insert(line);
  std::ifstream golden(file);
  for (std::string line; std::getline(golden, line);) promised.insert(line);
  for (const std::string& column : promised)
    EXPECT_TRUE(columns.contains(column)) << column << " is gone: whoever reads it must go on";
  if (const char* accept = std::getenv("MUNIMENT_ACCEPT");
      accept != nullptr && *accept == '1' && std::ranges::includes(columns, promised)) {
    std::ofstream out(file);
    for (const std::string& column : columns) out << column << '\n';
    promised = columns;
  }
  EXPECT_EQ(columns, promised) << "run again with MUNIMENT_ACCEPT=1 if the new ones are right";
}

}  // namespace
}  // namespace muniment::store
