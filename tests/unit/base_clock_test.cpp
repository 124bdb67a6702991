#include "base/clock.hpp"

#include <gtest/gtest.h>

namespace muniment {
namespace {

TEST(Clock, ATimeIsWrittenInUtcWithSixDigits) {
  EXPECT_EQ(format_time(Time{0}), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(format_time(Time{-1}), "1969-12-31T23:59:59.999999Z");
  EXPECT_EQ(format_time(Time{1'795'269'731'000'123}), "2026-11-21T14:02:11.000123Z");
}

TEST(Clock, WhatIsWrittenReadsBack) {
  for (std::int64_t micros : {std::int64_t{0}, std::int64_t{-62'135'596'800'000'000},
                              std::int64_t{253'402'300'799'999'999}, std::int64_t{951'782'400'000'001}}) {
    EXPECT_EQ(parse_time(format_time(Time{micros})), Time{micros}) << micros;
  }
}

TEST(Clock, OffsetsAndFractionsAreNormalised) {
  EXPECT_EQ(parse_time("2026-11-21T15:02:11.0001239+01:00"), Time{1'795'269'731'000'123});
  EXPECT_EQ(parse_time("2026-11-21t09:32:11-04:30"), Time{1'795'269'731'000'000});
  EXPECT_EQ(parse_time("2016-12-31T23:59:60Z"), parse_time("2017-01-01T00:00:00Z"));
}

TEST(Clock, WhatIsNotRfc3339IsRefused) {
  for (const char* text :
       {"", "2026-11-21", "2026-11-21T14:02:11", "2026-11-21 14:02:11Z", "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z", "2026-11-21T24:00:00Z", "2026-11-21T14:60:00Z", "2026-11-21T14:02:60Z",
        "2026-11-21T14:02:11.Z", "2026-11-21T14:02:11.1234567890Z", "2026-11-21T14:02:11Zx", "2026-11-21T14:02:11+1:00",
        "2026-11-21T14:02:11+24:00", "0000-12-31T23:59:59Z", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01",
        "+026-11-21T14:02:11Z"}) {
    EXPECT_EQ(parse_time(text), std::nullopt) << text;
  }
}

TEST(Clock, ATestMaySetTheTime) {
  struct Stopped : Clock {
    Time now() const override { return {42}; }
  } clock;
  const Clock& seen = clock;
  EXPECT_EQ(seen.now(), Time{42});
  EXPECT_GT(Clock().now(), Time{1'700'000'000'000'000});
}

}  // namespace
}  // namespace muniment
