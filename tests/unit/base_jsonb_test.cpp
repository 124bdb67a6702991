#include "base/json/jsonb.hpp"

#include <gtest/gtest.h>

#include <string>

namespace muniment::json {
namespace {

TEST(FromJsonb, NumbersThatWereWrittenOutAreReadAgain) {
  EXPECT_EQ(from_jsonb(R"({"loss": 100000000000000000000})"), R"({"loss": 1e20})");
  EXPECT_EQ(from_jsonb("[-2500000000000000000000]"), "[-2.5e21]");
  EXPECT_EQ(from_jsonb("123456789012345678901234567890123456789000"), "1.23456789012345678901234567890123456789e41");
  EXPECT_EQ(from_jsonb("1" + std::string(308, '0')), "1e308");
  EXPECT_EQ(from_jsonb("0." + std::string(311, '0')), "0.0");
  for (const std::string& text : {from_jsonb("1" + std::string(308, '0')), from_jsonb("0." + std::string(311, '0'))}) {
    EXPECT_TRUE(parse(text)) << text;
  }
}

TEST(FromJsonb, WhatIsAcceptedStaysAsItIs) {
  for (
      const std::string text :
      {R"({"a": [1, -1.50, 0, 1e20, 1.5E-300, null, true, ""], "100000000000000000000": "100000000000000000000 \" 1"})",
       "18446744073709551615", "-9223372036854775808", "0.00000000000000000000000000000000000001", "\"unfinished",
       ""}) {
    EXPECT_EQ(from_jsonb(text), text);
  }
}

TEST(FromJsonb, WhatNoAcceptedNumberMadeIsRefusedAsBefore) {
  EXPECT_FALSE(parse(std::string_view(from_jsonb("1" + std::string(400, '0')))));
  EXPECT_FALSE(parse(std::string_view(from_jsonb(std::string(60, '7')))));
}

}  // namespace
}  // namespace muniment::json
