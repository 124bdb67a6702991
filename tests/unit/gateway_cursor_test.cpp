#include "gateway/read/cursor.hpp"

#include <gtest/gtest.h>

namespace muniment::gateway {
namespace {

std::string question(std::string_view params) {
  const auto document = json::parse(params);
  return question_of("event.list", document->root());
}

TEST(Cursor, LeadsBackToItsPosition) {
  const std::string asked = question(R"({"run_id":"r1"})");
  for (std::int64_t position : {std::int64_t{0}, std::int64_t{918}, std::int64_t{1} << 40, INT64_MAX}) {
    const auto read = read_cursor(make_cursor(position, asked), asked);
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(*read, position);
  }
}

TEST(Cursor, TheSameQuestionInAnotherOrderIsTheSame) {
  EXPECT_EQ(question(R"({"run_id":"r1","types":["tool.*"]})"), question(R"({"types": ["tool.*"], "run_id":"r1"})"));
}

TEST(Cursor, WhatOnlyCutsThePageMayChange) {
  EXPECT_EQ(question(R"({"run_id":"r1"})"),
            question(R"({"run_id":"r1","limit":5,"max_bytes":99,"fields":["seq"],"cursor":"x","_meta":{}})"));
}

TEST(Cursor, OfAnotherListIsRefused) {
  const std::string cursor = make_cursor(7, question(R"({"run_id":"r1"})"));
  const auto read = read_cursor(cursor, question(R"({"run_id":"r2"})"));
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, Errc::invalid_argument);
  EXPECT_FALSE(read_cursor(cursor, question_of("run.list", {})).ok());
}

TEST(Cursor, WhatIsNoCursorIsRefused) {
  const std::string asked = question(R"({"run_id":"r1"})");
  const std::string good = make_cursor(7, asked);
  for (const std::string& bad : {std::string(), std::string("7"), good.substr(2), good + "00", "zz" + good.substr(2)}) {
    EXPECT_FALSE(read_cursor(bad, asked).ok()) << bad;
  }
}

}  // namespace
}  // namespace muniment::gateway
