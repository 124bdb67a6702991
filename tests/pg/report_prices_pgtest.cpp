// Tests of estimated costs: the price that applies, the sums of a run, and changes of the price list.
#include <gtest/gtest.h>

#include "store/tables/prices.hpp"
#include "support/report_fixture.hpp"

namespace muniment::store {
namespace {

constexpr const char* costs_sql =
    "SELECT concat_ws(' ', call_id, cost, currency, cost_basis) FROM report.model_call ORDER BY called_seq";
constexpr const char* run_costs_sql =
    "SELECT concat_ws(' ', coalesce(cost::text, '-'), currency, cost_estimated, price_list) FROM report.run_report";

// Makes prices current and returns their version.
std::string price(const std::string& uri, const std::string& text) {
  const auto prices = parse_prices(text);
  EXPECT_TRUE(prices.ok());
  Connection writer(uri, DatabaseRole::writer);
  const Status kept = keep_prices(writer, {"2026-11-30", *prices});
  EXPECT_TRUE(kept) << kept.error().message;
  return version_of(*prices);
}

TEST_F(Report, CostsThatWereNotRecordedAreEstimatedByTheCurrentPrices) {
  follow();
  const auto run = start_run("r1");
  answer_model(
      run, "plain",
      R"({"input_tokens":1000000,"cached_input_tokens":400000,"cache_write_tokens":100000,"output_tokens":100000})");
  answer_model(run, "recorded", R"({"input_tokens":9,"output_tokens":9,"cost":{"amount":2,"currency":"USD"}})");
  answer_model(run, "uncounted", R"({"reasoning_tokens":1})");
  append(
      run, "model.answered",
      R"({"call_id":"other","status":"ok","model":"m-2","finish_reasons":[],"content":[],"usage":{"input_tokens":5}})");
  catch_up();
  const auto calls = [this] { return ask("SELECT string_agg(x, ', ') FROM (" + std::string(costs_sql) + ") c (x)"); };
  EXPECT_EQ(calls(), "plain, recorded 2 USD recorded, uncounted, other");
  EXPECT_EQ(ask(run_costs_sql), "2 USD");
  // The price of the requested model; 500,000 at 2, 400,000 at 1, 100,000 at 4, and 100,000 at 10.
  const std::string first = price(uri, R"({"m-1":{"input":2,"output":10,"cached_input":1,"cache_write":4}})");
  EXPECT_EQ(calls(), "plain 2.8 USD prices " + first + ", recorded 2 USD recorded, uncounted, other");
  EXPECT_EQ(ask(run_costs_sql), "4.8 USD 2.8 " + first);
  // The price of the model that answered takes precedence; without prices of the cache its tokens cost as much as
  // others.
  const std::string second =
      price(uri, R"({"m-1":{"input":2,"output":10},"m-1-0613":{"input":1,"output":0},"m-2":{"input":0.1,"output":0}})");
  EXPECT_NE(first, second);
  EXPECT_EQ(calls(), "plain 1 USD prices " + second +
                         ", recorded 2 USD recorded, uncounted, other 0.0000005 USD prices " + second);
  EXPECT_EQ(ask(run_costs_sql), "3.0000005 USD 1.0000005 " + second);
  EXPECT_EQ(price(uri, R"({"m-1":{"input":2,"output":10,"cached_input":1,"cache_write":4}})"), first);
  EXPECT_EQ(ask(run_costs_sql), "4.8 USD 2.8 " + first) << "a list may be current again";
  EXPECT_EQ(ask("SELECT string_agg(model, ' ' ORDER BY model) FROM report.price WHERE current"), "m-1");
  EXPECT_EQ(ask("SELECT count(*) FROM report.price WHERE version = '" + second + "'"), "3") << "it is kept";
  expect_as_the_log_says();
  EXPECT_EQ(ask(run_costs_sql), "4.8 USD 2.8 " + first) << "a rebuild keeps the prices";
  price(uri, "");
  EXPECT_EQ(ask(run_costs_sql), "2 USD");
}

TEST_F(Report, AnEstimateIsNotAddedToAnotherCurrencyNorToTheCostOfTheWholeRun) {
  follow();
  const std::string version = price(uri, R"({"m-1":{"input":1000000,"output":0}})");
  const auto euros = start_run("r1");
  answer_model(euros, "a", R"({"input_tokens":1,"cost":{"amount":2,"currency":"EUR"}})");
  const std::int64_t estimated = answer_model(euros, "b", R"({"input_tokens":3})");
  catch_up();
  EXPECT_EQ(ask(run_costs_sql), "- mixed 3 " + version);
  const auto costs = reader->answer_costs(euros->view().run_no, -1, 10);
  ASSERT_TRUE(costs.ok());
  ASSERT_EQ(costs->size(), 2u);
  EXPECT_EQ(costs->at(0).amount + costs->at(0).currency + costs->at(0).basis, "2EURrecorded");
  EXPECT_EQ(costs->at(1).amount + costs->at(1).currency + costs->at(1).basis, "3USDprices " + version);
  EXPECT_EQ(costs->at(1).seq, estimated);
  erase(euros, estimated);
  EXPECT_EQ(ask(run_costs_sql), "2 EUR") << "the tokens of an erased answer are not known";
  append(euros, "run.ended", R"({"outcome":"success"})");
  const auto whole = start_run("r2");
  answer_model(whole, "c", R"({"input_tokens":3})");
  catch_up();
  const std::string second = run_costs_sql + std::string(" WHERE run_id = 'r2'");
  EXPECT_EQ(ask(second), "3 USD 3 " + version);
  append(whole, "run.ended", R"({"outcome":"success","usage":{"cost":{"amount":"0.25","currency":"EUR"}}})");
  catch_up();
  EXPECT_EQ(ask(second), "0.25 EUR");
  const auto listed = reader->runs({}, 10);
  ASSERT_TRUE(listed.ok());
  EXPECT_EQ(listed->front().cost, (RunCost{"0.25", "EUR", std::nullopt, std::nullopt}));
  EXPECT_EQ(listed->back().cost, (RunCost{"2", "EUR", std::nullopt, std::nullopt}));
}

TEST_F(Report, CostsByDayAndModelAddUpToThoseOfTheRuns) {
  follow();
  const auto run = start_run("r1");
  answer_model(run, "estimated", R"({"input_tokens":1000000,"output_tokens":0})");
  answer_model(run, "recorded", R"({"input_tokens":9,"output_tokens":9,"cost":{"amount":2,"currency":"USD"}})");
  append(
      run, "model.answered",
      R"({"call_id":"other","status":"ok","model":"m-2","finish_reasons":[],"content":[],"usage":{"input_tokens":5}})");
  // The source of the second run gives only its total, which leaves nothing to estimate.
  const auto whole = start_run("r2");
  answer_model(whole, "counted", R"({"input_tokens":7,"output_tokens":1})");
  append(
      whole, "run.ended",
      R"({"outcome":"success","usage":{"input_tokens":70,"output_tokens":10,"cost":{"amount":0.5,"currency":"USD"}}})");
  const auto tokens = start_run("r3");
  append(tokens, "run.ended", R"({"outcome":"success","usage":{"input_tokens":70,"output_tokens":10}})");
  catch_up();
  const std::string version = price(uri, R"({"m-1":{"input":3,"output":10}})");
  const std::string rows =
      "SELECT string_agg(concat_ws(' ', run_id, coalesce(model, '-'), calls, input_tokens, recorded, 'e' || estimated, "
      "currency, unpriced_calls), ', ' ORDER BY run_id, model, calls DESC) FROM report.cost_report";
  EXPECT_EQ(ask(rows),
            "r1 m-1-0613 2 1000009 2 e3 USD 0, r1 m-2 1 5 1, r2 m-1-0613 1 7 0, r2 m-1-0613 0 0.5 USD 0, r3 - 0 70 0");
  EXPECT_EQ(ask("SELECT count(*) FROM report.cost_report WHERE day <> (now() AT TIME ZONE 'UTC')::date"), "0");
  EXPECT_EQ(ask("SELECT string_agg(DISTINCT price_list, ' ') FROM report.cost_report"), version);
  EXPECT_EQ(ask("SELECT DISTINCT list_date FROM report.price"), "2026-11-30");
  EXPECT_EQ(ask("SELECT count(*) FROM report.run_report r JOIN (SELECT run_id, sum(input_tokens) AS tokens, "
                "sum(coalesce(recorded, 0) + coalesce(estimated, 0)) FILTER (WHERE currency IS NOT NULL) AS cost "
                "FROM report.cost_report GROUP BY run_id) c USING (run_id) "
                "WHERE r.cost IS NOT DISTINCT FROM c.cost AND r.input_tokens = c.tokens"),
            "3");
  EXPECT_EQ(ask("SET muniment.runs = 'r3'; SELECT count(DISTINCT run_id) FROM report.cost_report"), "1");
}

}  // namespace
}  // namespace muniment::store
