#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/json/json.hpp"

namespace muniment::json {
namespace {

std::string canonical_of(std::string_view text) {
  const auto document = parse(text);
  return document ? canonical(document->root()) : document.error().message;
}

TEST(JsonWriter, CommasAndColonsAreItsBusiness) {
  Writer writer;
  writer.begin_object().member("a", 1).key("b").begin_array().number(std::int64_t{-1}).boolean(false);
  writer.null().begin_object().end_object().begin_array().end_array().end_array();
  writer.member("c", "x").member("d", true).member("e", std::size_t{7}).raw_member("f", "[1]");
  writer.member("g", 0.5).end_object();
  EXPECT_EQ(writer.text(), R"({"a":1,"b":[-1,false,null,{},[]],"c":"x","d":true,"e":7,"f":[1],"g":0.5})");
}

TEST(JsonWriter, StringsAreEscapedAsLittleAsPossible) {
  EXPECT_EQ(quote("a/\"\\\b\f\n\r\t\x1b\x7f ä😀"), "\"a/\\\"\\\\\\b\\f\\n\\r\\t\\u001b\x7f ä😀\"");
  EXPECT_EQ(quote(std::string_view("\0", 1)), "\"\\u0000\"");
}

TEST(JsonWriter, InvalidUtf8BecomesTheReplacementCharacter) {
  EXPECT_EQ(quote("a\xFFz"), "\"a\uFFFDz\"");
  EXPECT_EQ(quote("\xE2\x82"), "\"\uFFFD\uFFFD\"");
}

TEST(JsonWriter, DoublesReadBackEqualAndAreAccepted) {
  for (double value : {0.0, -0.5, 1.0 / 3, 1e15, 123456789012345678.0, 1.8446744073709552e19, 1e22, 1e300, 1e-300,
                       std::numeric_limits<double>::max()}) {
    const std::string text = Writer().number(value).text();
    const auto document = parse(text);
    ASSERT_TRUE(document) << text << document.error().message;
    EXPECT_EQ(document->root().as_double(), value) << text;
  }
  EXPECT_EQ(Writer().number(std::numeric_limits<double>::denorm_min()).text(), "0");
  EXPECT_EQ(Writer().number(std::nan("")).text(), "null");
  EXPECT_EQ(Writer().number(std::numeric_limits<double>::infinity()).text(), "null");
}

TEST(Canonical, MembersAreSortedByTheirBytesAndSpaceGoes) {
  EXPECT_EQ(canonical_of(R"( { "b" : [ 1 , 2 ] , "a" : { } , "" : null , "B" : true } )"),
            R"({"":null,"B":true,"a":{},"b":[1,2]})");
  // U+FF61 sorts before U+1F600 in UTF-8, after it in UTF-16.
  EXPECT_EQ(canonical_of(R"({"\ud83d\ude00":1,"\uff61":2,"ab":3,"a":4})"), R"({"a":4,"ab":3,"｡":2,"😀":1})");
}

TEST(Canonical, NumberTokensStayAndEscapesShrink) {
  EXPECT_EQ(canonical_of(R"([1.50,1E2,-0,"\u0041\/\u000a\u001F","x"])"), R"([1.50,1E2,-0,"A/\n\u001f","x"])");
}

TEST(Canonical, AMemberIsWrittenAloneToo) {
  const auto document = parse(R"({"a":{"z":1,"y":2}})");
  ASSERT_TRUE(document);
  EXPECT_EQ(canonical(document->root()["a"]), R"({"y":2,"z":1})");
}

}  // namespace
}  // namespace muniment::json
