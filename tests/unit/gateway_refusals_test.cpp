#include "gateway/request/refusals.hpp"

#include <gtest/gtest.h>

#include "base/json/json.hpp"
#include "base/limits.hpp"

namespace muniment::gateway {
namespace {

const Time noon = *parse_time("2026-11-22T12:00:10Z");
const Time next_minute{noon.micros + 60'000'000};

Error halted(std::string run_id) {
  Error error(Errc::run_halted, "SYSTEM_ERROR");
  error.run_id = std::move(run_id);
  return error;
}

}  // namespace

TEST(Refusals, AreCountedByWhoWhyRunAndMinute) {
  Refusals refusals;
  refusals.note("uid:1", "event.append", halted("r1"), noon);
  refusals.note("uid:1", "artifact.put", halted("r1"), noon);
  refusals.note("uid:1", "event.append", Error(Errc::denied, "no"), noon);
  refusals.note("uid:2", "event.append", halted("r1"), noon);
  EXPECT_TRUE(refusals.take(noon, false).empty());
  const auto bodies = refusals.take(next_minute, false);
  ASSERT_EQ(bodies.size(), 3U);
  EXPECT_EQ(
      bodies[1],
      R"({"principal":"uid:1","minute":"2026-11-22T12:00:00.000000Z","count":2,"reason":"run_halted","run_id":"r1",)"
      R"("methods":["artifact.put","event.append"]})");
  EXPECT_TRUE(refusals.take(next_minute, true).empty());
}

TEST(Refusals, ANotFoundCountsOnlyWhereItHidesARun) {
  Refusals refusals;
  Error error(Errc::not_found, "no run r1");
  refusals.note("uid:1", "run.get", error, noon);
  EXPECT_TRUE(refusals.take(noon, true).empty());
  error.hidden = true;
  refusals.note("uid:1", "run.get", error, noon);
  const auto bodies = refusals.take(noon, true);
  ASSERT_EQ(bodies.size(), 1U);
  EXPECT_NE(bodies[0].find(R"("reason":"denied")"), std::string::npos);
}

TEST(Refusals, WhoAsksForVeryManyRunsIsCountedWithoutThem) {
  Refusals refusals;
  const std::size_t asked = limits::refusals_told_apart_max + 500;
  for (std::size_t i = 0; i < asked; ++i) refusals.note("uid:1", "run.get", halted("r" + std::to_string(i)), noon);
  const auto bodies = refusals.take(noon, true);
  EXPECT_LE(bodies.size(), limits::refusals_told_apart_max + 1);
  std::int64_t counted = 0;
  for (const std::string& body : bodies) counted += json::parse(body)->root()["count"].as_int().value_or(0);
  EXPECT_EQ(counted, static_cast<std::int64_t>(asked));
}

TEST(Refusals, OtherErrorsAreNoRefusals) {
  Refusals refusals;
  refusals.note("uid:1", "event.append", Error(Errc::invalid_argument, "no"), noon);
  refusals.note("uid:1", "event.append", Error(Errc::over_budget, "no"), noon);
  EXPECT_TRUE(refusals.take(noon, true).empty());
}

}  // namespace muniment::gateway
