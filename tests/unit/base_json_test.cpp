#include "base/json/json.hpp"

#include <gtest/gtest.h>

#include "base/limits.hpp"

namespace muniment::json {
namespace {

std::string problem(std::string_view text) {
  const auto document = parse(text);
  return document ? "" : document.error().message;
}

bool accepted(std::string_view text) { return parse(text).ok(); }

TEST(Json, AValueKeepsTheBytesItWasWrittenWith) {
  const std::string text = R"( {"a": 1.50e2, "b" : [ true,null ,"x\u00e4\n"], "\u0063": {}} )";
  const auto document = parse(text);
  ASSERT_TRUE(document) << document.error().message;
  const Value root = document->root();
  EXPECT_EQ(root.source(), text.substr(1, text.size() - 2));
  EXPECT_EQ(root["a"].source(), "1.50e2");
  EXPECT_EQ(root["a"].as_double(), 150.0);
  EXPECT_EQ(root["a"].as_int(), std::nullopt);
  EXPECT_EQ(root["b"].source(), R"([ true,null ,"x\u00e4\n"])");
  EXPECT_EQ(root["b"].size(), 3U);
  EXPECT_TRUE(root["c"].is(Kind::object));
  EXPECT_EQ(root.size(), 3U);
}

TEST(Json, MembersAndItemsAreVisitedInTheirOrder) {
  const auto document = parse(R"({"b":[1,[2,3],{"x":4}],"a\"":5,"":6})");
  ASSERT_TRUE(document);
  std::string seen;
  for (Value member : document->root()) seen += member.key() + "=" + std::string(member.source()) + ";";
  EXPECT_EQ(seen, R"(b=[1,[2,3],{"x":4}];a"=5;=6;)");
  seen.clear();
  for (Value item : document->root()["b"]) seen += std::string(item.source()) + ";";
  EXPECT_EQ(seen, R"(1;[2,3];{"x":4};)");
  for (Value item : document->root()[""]) FAIL() << item.source();
}

TEST(Json, WhatIsAbsentStaysAbsentAlongAPath) {
  const auto document = parse(R"({"a":{"b":null}})");
  ASSERT_TRUE(document);
  const Value absent = document->root()["x"]["y"]["z"];
  EXPECT_FALSE(absent);
  EXPECT_EQ(absent.as_int(), std::nullopt);
  EXPECT_EQ(absent.string_or("fallback"), "fallback");
  EXPECT_EQ(absent.size(), 0U);
  EXPECT_EQ(absent.source(), "");
  for (Value item : absent) FAIL() << item.source();
  EXPECT_TRUE(document->root()["a"]["b"].is(Kind::null));
}

TEST(Json, StringsAreUnescaped) {
  const auto document = parse(R"(["plain ä","\"\\\/\b\f\n\r\t","\u00e4\u20ac\ud83d\ude00"])");
  ASSERT_TRUE(document);
  auto item = document->root().begin();
  EXPECT_EQ((*item).as_plain_string(), "plain ä");
  ++item;
  EXPECT_EQ((*item).as_plain_string(), std::nullopt);
  EXPECT_EQ((*item).as_string(), "\"\\/\b\f\n\r\t");
  ++item;
  EXPECT_EQ((*item).as_string(), "ä€😀");
}

TEST(Json, IntegersHave64Bits) {
  const auto document = parse("[-9223372036854775808,9223372036854775807,18446744073709551615,-0,7]");
  ASSERT_TRUE(document) << document.error().message;
  std::vector<std::optional<std::int64_t>> values;
  for (Value item : document->root()) values.push_back(item.as_int());
  EXPECT_EQ(values, (std::vector<std::optional<std::int64_t>>{INT64_MIN, INT64_MAX, std::nullopt, std::nullopt, 7}));
  EXPECT_EQ(problem("[18446744073709551616]"), "JSON at byte 1: an integer beyond 64 bits. Send it as a string.");
  EXPECT_EQ(problem("-9223372036854775809"), "JSON at byte 0: an integer beyond 64 bits. Send it as a string.");
}

TEST(Json, OtherNumbersHaveFortyDigitsAndExponentsUpTo308) {
  EXPECT_TRUE(accepted("0." + std::string(40, '1')));
  EXPECT_TRUE(accepted("0.000" + std::string(40, '1')));
  EXPECT_EQ(problem("[1, 0." + std::string(41, '1') + "]"),
            "JSON at byte 4: a number of more than 40 significant digits. Send it as a string.");
  EXPECT_FALSE(accepted("1." + std::string(40, '0')));
  EXPECT_TRUE(accepted("1e308"));
  EXPECT_TRUE(accepted("1E-308"));
  EXPECT_TRUE(accepted("0e0"));
  EXPECT_TRUE(accepted("-0.0"));
  const std::string exponent = "JSON at byte 0: a number with an exponent beyond 308. Send it as a string.";
  EXPECT_EQ(problem("1e309"), exponent);
  EXPECT_EQ(problem("1e-309"), exponent);
  EXPECT_EQ(problem("1e-20000"), exponent);
  EXPECT_EQ(problem("0e999999999999999999999"), exponent);
  EXPECT_EQ(problem("10e308"), exponent);
  EXPECT_EQ(problem("0.1e-308"), exponent);
  EXPECT_EQ(problem("0." + std::string(20'000, '0') + "1"), exponent);
  EXPECT_EQ(problem("0." + std::string(20'000, '0')), exponent);
  EXPECT_EQ(problem("9.9e308"), "JSON has a number beyond 1.797e308, the largest. Send it as a string.");
}

TEST(Json, DuplicateKeysAreRefusedHoweverTheyAreWritten) {
  EXPECT_EQ(problem(R"({"a":1,"b":2,"a":3})"), "JSON at byte 13: the key \"a\" occurs twice. Keep one.");
  EXPECT_EQ(problem(R"([{"ä":1,"\u00e4":2}])"), "JSON at byte 9: the key \"ä\" occurs twice. Keep one.");
  EXPECT_FALSE(accepted(R"({"":1,"":2})"));
  EXPECT_TRUE(accepted(R"({"a":{"a":1},"b":{"a":1}})"));
}

TEST(Json, DuplicateKeysAreFoundAmongManyKeys) {
  std::string many = "{";
  for (int i = 0; i < 50'000; ++i) many += "\"key" + std::to_string(i) + "\":{\"key7\":1},";
  EXPECT_TRUE(accepted(many + "\"last\":0}"));
  EXPECT_FALSE(accepted(many + "\"key49123\":0}"));
  EXPECT_FALSE(accepted(many + "\"\\u006bey7\":0}"));
}

TEST(Json, NulAndLoneSurrogatesAreRefusedInKeysToo) {
  EXPECT_EQ(problem(R"("a\u0000")"),
            "JSON at byte 2: \\u0000 is not allowed. Send such bytes as an artifact or base64.");
  for (const char* text : {R"("\ud800")", R"("\udc00")", R"("\ud800\ud800")", R"("\ud800x")", R"("\ud800\n")",
                           R"({"\ud83d":1})", R"("\ude00\ud83d")"}) {
    EXPECT_NE(problem(text).find("surrogate"), std::string::npos) << text << problem(text);
  }
  EXPECT_FALSE(accepted(R"({"\u0000":1})"));
}

TEST(Json, NestingIsAtMost64Levels) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(accepted(nested(limits::json_depth_max)));
  EXPECT_TRUE(parse(std::string_view("[[[]]]"), 3).ok());
  EXPECT_FALSE(parse(std::string_view("[[[]]]"), 2).ok());
  const std::string message =
      "JSON at byte 64: nested deeper than 64 levels, the limit. Flatten it, or send the inner part "
      "as a string.";
  EXPECT_EQ(problem(nested(limits::json_depth_max + 1)), message);
  EXPECT_EQ(problem(nested(100'000)), message);
  EXPECT_EQ(problem(std::string(100'000, '[')), message);
}

TEST(Json, BytesThatAreNotUtf8AreNamedByTheirPlace) {
  EXPECT_EQ(problem("\"ab\xFF\""), "JSON at byte 3: not UTF-8. Send other bytes as an artifact or base64.");
  EXPECT_FALSE(accepted("\"\xC0\x80\""));
  EXPECT_FALSE(accepted("\"\xED\xA0\x80\""));
  EXPECT_FALSE(accepted("\"\xF4\x90\x80\x80\""));
  EXPECT_FALSE(accepted("\"\xE2\x82\""));
}

TEST(Json, WhatIsNotJsonIsRefusedWithItsPlace) {
  EXPECT_EQ(problem(""), "empty text, expected a JSON value.");
  EXPECT_EQ(problem("{\"a\":1"), "JSON at byte 6: the text ends, expected \",\" or \"}\" after a member.");
  EXPECT_EQ(problem("{a:1}"), "JSON at byte 1: expected a key in double quotes.");
  EXPECT_EQ(problem("[1,]"), "JSON at byte 3: expected a JSON value.");
  EXPECT_EQ(problem("tru"), "JSON at byte 0: expected a JSON value.");
  EXPECT_EQ(problem("01"), "JSON at byte 0: a number with a leading zero.");
  EXPECT_EQ(problem("{} {}"), "JSON at byte 3: text follows the value. Send one value.");
  EXPECT_EQ(problem("\"a\nb\""), "JSON at byte 2: a control character inside a string. Write it as \\u000a.");
  for (const char* text :
       {" ",   "nul",        "NaN",     "Infinity",       "-",     "+1",      "1.",       ".5",  "1e", "1e+",
        "'a'", "\"",         "\"\\x\"", "\"\\u12\"",      "[1 2]", "{\"a\"}", "{\"a\":}", "{,}", "[",  "]",
        "[1}", "{\"a\":1,}", "// x\n1", "\xEF\xBB\xBF{}", "1\f"}) {
    EXPECT_FALSE(accepted(text)) << text;
  }
  EXPECT_FALSE(accepted(std::string_view("1\0", 2)));
}

TEST(Json, ALargeTextIsParsedLikeASmallOne) {
  std::string text = "[";
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i) + ",";
  text += "\"end\"]";
  const auto document = parse(text);
  ASSERT_TRUE(document);
  EXPECT_EQ(document->root().size(), 100'001U);
}

TEST(Json, ADocumentMovesWithItsNodes) {
  auto made = parse(R"({"a":[1,2]})");
  ASSERT_TRUE(made);
  const Document moved = *std::move(made);
  EXPECT_EQ(moved.root()["a"].source(), "[1,2]");
}

}  // namespace
}  // namespace muniment::json
