#include "cli/show/metrics_text.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "cli/show/top_frame.hpp"

namespace muniment::cli {
namespace {

TEST(MetricsReader, ReadsWhatTheDaemonWrites) {
  std::ostringstream text;
  text << std::ifstream(MUNIMENT_GOLDEN "/metrics.txt").rdbuf();
  const auto metrics = parse_metrics(text.str());
  ASSERT_TRUE(metrics) << metrics.error().message;
  EXPECT_EQ(metrics->value("muniment_log_events_total"), 42);
  EXPECT_EQ(metrics->value("muniment_requests_total", "code", "over_budget"), 1);
  EXPECT_EQ(metrics->sum("muniment_requests_total"), 4);
  EXPECT_EQ(metrics->sum("muniment_requests_total", "code", "ok"), 1);
  const Distribution batches = metrics->distribution("muniment_append_batch_events");
  EXPECT_EQ(batches.count(), 4);
  EXPECT_EQ(batches.sum, 2'005);
  EXPECT_EQ(batches.buckets.at(1), 2);
  EXPECT_EQ(batches.buckets.at(4), 1);
}

TEST(MetricsReader, EscapedLabelsAreRead) {
  const auto metrics = parse_metrics("a{b=\"x\\\"y\\\\z\\n,}=\",c=\"d\"} 1.5\n");
  ASSERT_TRUE(metrics);
  EXPECT_EQ(metrics->samples[0].label("b"), "x\"y\\z\n,}=");
  EXPECT_EQ(metrics->samples[0].label("c"), "d");
  EXPECT_EQ(metrics->samples[0].label("e"), "");
  EXPECT_EQ(metrics->samples[0].value, 1.5);
}

TEST(MetricsReader, WhatIsNoSampleIsRefusedWithItsLine) {
  for (const char* text : {"a\n", "a b\n", "1a 1\n", "a{b} 1\n", "a{b=\"c} 1\n", "a{b=\"\\x\"} 1\n", "a 1 \n", " a 1\n",
                           "a{b=\"c\"}1\n", "a{=\"c\"} 1\n"}) {
    const auto metrics = parse_metrics("# HELP\nfirst 1\n" + std::string(text));
    ASSERT_FALSE(metrics) << text;
    EXPECT_EQ(metrics.error().message, "line 3 of the metrics is not a sample");
  }
  EXPECT_FALSE(parse_metrics("a 1"));
}

TEST(MetricsReader, QuantilesLieWithinTheirBucket) {
  Distribution times;
  times.buckets = {{0.001, 50}, {0.01, 49}, {0.1, 1}, {INFINITY, 0}};
  EXPECT_DOUBLE_EQ(times.quantile(0.5).value(), 0.001);
  EXPECT_DOUBLE_EQ(times.quantile(0.99).value(), 0.01);
  EXPECT_NEAR(times.quantile(1).value(), 0.1, 1e-9);
  times.buckets[INFINITY] = 1'000;
  EXPECT_DOUBLE_EQ(times.quantile(0.99).value(), 0.1);  // beyond the last bound, the exact value is unknown
  EXPECT_FALSE(Distribution().quantile(0.5));
  const Distribution newer = times.since(times);
  EXPECT_FALSE(newer.quantile(0.5));
}

TEST(Top, AFrameIsWhatCameBetweenTwoLooks) {
  TopLook before, after;
  before.at = Monotonic() + std::chrono::seconds(10);
  after.at = before.at + std::chrono::seconds(2);
  before.metrics = *parse_metrics(
      "muniment_log_events_total 100\nmuniment_append_seconds_bucket{le=\"0.001\"} 5\nmuniment_append_seconds_bucket{le=\"+Inf\"} 5\n");
  after.metrics = *parse_metrics(
      "muniment_log_events_total 300\nmuniment_append_seconds_bucket{le=\"0.001\"} 25\nmuniment_append_seconds_bucket{le=\"+Inf\"} 25\n"
      "muniment_follower_lag_events{follower=\"run\"} 0\nmuniment_follower_lag_events{follower=\"report\"} 7\n");
  after.runs.push_back({"evil\x1b[2J\nrun", "agent\x9b", "x.test", 3, Time{0}});
  after.degraded.push_back("it \x1b]0;title\x07 broke");
  after.late.push_back({"report", 7, Time{0}});
  after.now = Time{90'000'000};
  const TopFrame frame = frame_of(before, after);
  EXPECT_NE(json_of(frame).find(R"("followers_late":[{"follower":"report","events":7,"since":"1970-01-01T00:00:00)"),
            std::string::npos);
  EXPECT_EQ(frame.events_per_second, 100);
  EXPECT_EQ(frame.append.per_second, 10);
  EXPECT_NEAR(frame.append.p50_s.value(), 0.0005, 1e-9);
  EXPECT_EQ(frame.lags.front(), (std::pair<std::string, std::int64_t>("report", 7)));
  const Output out = Output::to_stdout(false);
  std::string text;
  for (const std::string& line : lines_of(frame, out, 100)) {
    EXPECT_EQ(line.find_first_of("\x1b\x07\n\r"), std::string::npos) << line;
    text += line + "\n";
  }
  EXPECT_NE(text.find("\\x1b[2J run"), std::string::npos) << text;
  EXPECT_NE(text.find("report 7 events behind"), std::string::npos) << text;
  EXPECT_NE(text.find("behind   report by 7 events since 1970-01-01T00:00:00Z (1 min 30 s): the views"),
            std::string::npos)
      << text;
  EXPECT_EQ(lines_of(frame, out, 5).size(), 5U);
}

}  // namespace
}  // namespace muniment::cli
