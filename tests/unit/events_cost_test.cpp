#include "events/cost.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>

namespace muniment::events {
namespace {

std::string counted(std::string_view amount) {
  const auto picos = parse_amount(amount);
  return picos ? sum_text(*picos) : "uncounted";
}

TEST(Cost, IsTheExactDecimal) {
  EXPECT_EQ(counted("0"), "0");
  EXPECT_EQ(counted("0.0"), "0");
  EXPECT_EQ(counted("12"), "12");
  EXPECT_EQ(counted("0.1"), "0.1");
  EXPECT_EQ(counted("0.10"), "0.1");
  EXPECT_EQ(counted("10.50"), "10.5");
  EXPECT_EQ(counted("7.5e-8"), "0.000000075");
  EXPECT_EQ(counted("1.5E+3"), "1500");
  EXPECT_EQ(counted("0e308"), "0");
  EXPECT_EQ(counted("0.00012e4"), "1.2");
  EXPECT_EQ(counted("100e-2"), "1");
}

TEST(Cost, IsCutAfterTwelveDecimals) {
  EXPECT_EQ(counted("0.0000000000019"), "0.000000000001");
  EXPECT_EQ(counted("0.30000000000000004"), "0.3");
  EXPECT_EQ(counted("1e-12"), "0.000000000001");
  EXPECT_EQ(counted("9.99e-13"), "0");
  EXPECT_EQ(counted("1e-308"), "0");
}

TEST(Cost, WhatIsTooLargeOrNoNumberDoesNotCount) {
  EXPECT_EQ(counted("999999999999999.999999999999"), "999999999999999.999999999999");
  EXPECT_EQ(counted("1000000000000000"), "uncounted");
  EXPECT_EQ(counted("1e15"), "uncounted");
  EXPECT_EQ(counted("1e14"), "100000000000000");
  for (std::string_view bad : {"", "-1", "-0", "+1", ".5", "5.", "01", "1e", "1e+", "0x1", "1 ", " 1", "1,5", "NaN",
                               "1e309", "1e-309", "1e99999999999"}) {
    EXPECT_EQ(counted(bad), "uncounted") << bad;
  }
  EXPECT_EQ(counted("0." + std::string(98, '1')), "0.111111111111");
  EXPECT_EQ(counted("0." + std::string(99, '1')), "uncounted");
}

TEST(Cost, ASumReadsBack) {
  EXPECT_TRUE(rc::check([](std::uint64_t high, std::uint64_t low) {
    const Picos sum = (Picos{high} << 40) + low;
    RC_ASSERT(parse_sum(sum_text(sum)) == sum);
  }));
}

TEST(Cost, TenTimesATenthIsOne) {
  Picos sum = 0;
  for (int i = 0; i < 10; ++i) sum += *parse_amount("0.1");
  EXPECT_EQ(sum_text(sum), "1");
}

}  // namespace
}  // namespace muniment::events
