#include "base/metrics.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "base/limits.hpp"

namespace muniment::metrics {
namespace {

TEST(Histogram, AValueOnABoundIsWithinIt) {
  Histogram histogram(batch_bounds);
  for (const std::int64_t value : {0, 1, 2, 3, 4, 1'024, 1'025}) histogram.record(value);
  const auto seen = histogram.seen();
  EXPECT_EQ(seen.counts, (std::vector<std::int64_t>{2, 1, 2, 0, 0, 0, 0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(seen.count, 7);
  EXPECT_EQ(seen.sum, 2'059);
}

TEST(Histogram, NothingIsLostBetweenThreads) {
  Histogram histogram(time_bounds);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int value = 0; value < 10'000; ++value) histogram.record(value);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(histogram.seen().count, 40'000);
  EXPECT_EQ(histogram.seen().sum, 4 * 49'995'000);
}

TEST(Family, BeyondItsLimitEverythingIsOther) {
  Family<Counter> family;
  for (std::size_t i = 0; i < limits::metric_names_max; ++i) family.of("n" + std::to_string(i)).add();
  Counter& kept = family.of("n0");
  family.of("one more").add();
  family.of("and another").add();
  std::size_t names = 0;
  std::int64_t other = 0;
  family.each([&](std::string_view name, const Counter& counter) {
    ++names;
    if (name == "other") other = counter.value();
  });
  EXPECT_EQ(names, limits::metric_names_max + 1);
  EXPECT_EQ(other, 2);
  EXPECT_EQ(&kept, &family.of("n0"));
}

TEST(MetricsText, NumbersAreWrittenWithoutExponents) {
  EXPECT_EQ(decimal_of(0, 1'000'000), "0");
  EXPECT_EQ(decimal_of(50, 1'000'000), "0.00005");
  EXPECT_EQ(decimal_of(1'500, 1'000'000), "0.0015");
  EXPECT_EQ(decimal_of(10'000'000, 1'000'000), "10");
  EXPECT_EQ(decimal_of(123'456'789'000'001, 1'000'000), "123456789.000001");
  EXPECT_EQ(decimal_of(-2'500'000, 1'000'000), "-2.5");
  EXPECT_EQ(decimal_of(-500'000, 1'000'000), "-0.5");
  EXPECT_EQ(decimal_of(7, 1), "7");
}

TEST(MetricsText, LabelsAreEscaped) { EXPECT_EQ(label("name", "a\"b\\c\nd"), R"(name="a\"b\\c\nd")"); }

// Every kind of metric of server.metrics, in Prometheus's format; promtool reports no problem in the golden file.
TEST(MetricsText, TheFormatIsThatOfTheGoldenFile) {
  Histogram batch(batch_bounds), seconds(coarse_time_bounds);
  for (const std::int64_t value : {1, 1, 3, 2'000}) batch.record(value);
  seconds.record(std::chrono::microseconds(1'500));
  Text text;
  text.counter("log_events_total", "Events in the log.", 42);
  text.gauge("process_open_fds", "Its open descriptors.", 17);
  text.family("requests_total", Type::counter, "Requests that were answered, by method and code.");
  text.sample(3, label("method", "event.append") + "," + label("code", "ok"));
  text.sample(1, label("method", "event.append") + "," + label("code", "over_budget"));
  text.family("append_batch_events", Type::histogram, "Events in one transaction.");
  text.histogram(batch, 1);
  text.family("statement_seconds", Type::histogram, "One statement.");
  text.histogram(seconds, 1'000'000, label("statement", "run_put"));
  text.seconds("query_seconds", "One evidence.retrieve.", Histogram(coarse_time_bounds));
  const std::string written = std::move(text).text();

  const std::string path = MUNIMENT_GOLDEN "/metrics.txt";
  if (std::getenv("MUNIMENT_ACCEPT") != nullptr) std::ofstream(path) << written;
  std::ostringstream golden;
  golden << std::ifstream(path).rdbuf();
  EXPECT_EQ(written, golden.str());
}

}  // namespace
}  // namespace muniment::metrics
