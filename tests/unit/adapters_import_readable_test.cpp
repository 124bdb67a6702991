// Tests of the repair of JSON: characters that strict JSON forbids are replaced one by one, and whole records on a
// broken line are found.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "adapters/import/readable.hpp"
#include "base/json/json.hpp"

namespace muniment::cli {
namespace {

TEST(Readable, TextThatIsReadableStaysAsItIs) {
  const std::string text = "{\"a\\u00e9\":\"\xC3\xA9 \\ud83d\\ude00 \\\\u0000\",\n\t\"b\":[1]}";
  const ReadableText read = with_readable_characters(text);
  EXPECT_EQ(read.text, text);
  EXPECT_EQ(read.replaced, 0U);
  EXPECT_TRUE(read.shifts.empty());
}

TEST(Readable, EachCharacterThatIsRefusedIsReplacedAndCounted) {
  const std::string text = std::string("{\"a\":\"x\\u0000y\\ud83d\\u0041\\udc00\xFFz\t") + '\0' + "\"}";
  const ReadableText read = with_readable_characters(text);
  EXPECT_EQ(read.replaced, 5U);
  const auto document = json::parse(std::string_view(read.text));
  ASSERT_TRUE(document.ok()) << document.error().message;
  EXPECT_EQ(document->root()["a"].string_or(""),
            "x\xEF\xBF\xBDy\xEF\xBF\xBD"
            "A\xEF\xBF\xBD\xEF\xBF\xBDz\t\xEF\xBF\xBD");
}

TEST(Readable, OffsetsLeadBackToTheSource) {
  const std::string text = "{\"a\":\"\xFF\xFE\",\"b\":{\"c\":\"\xFF\"},\"d\":7}";
  const ReadableText read = with_readable_characters(text);
  for (const char* part : {"\"b\"", "\"c\"", "\"d\"", "7}"})
    EXPECT_EQ(read.source_offset(read.text.find(part)), text.find(part)) << part;
  EXPECT_EQ(read.source_offset(read.text.size()), text.size());
}

std::vector<std::string> kinds_of(const std::string& line) {
  std::vector<std::string> kinds;
  read_line_records(line, [&](const LineRecord& record) {
    kinds.push_back(record.value.present() ? record.value["uuid"].string_or("?") : "unreadable");
  });
  return kinds;
}

TEST(Readable, WholeRecordsOfASplicedLineAreFound) {
  const std::string one = R"({"type":"user","uuid":"1","message":{"content":"a {\"type\": } b"}})";
  const std::string two = R"({"type":"user","uuid":"2","message":{"content":[{"type":"text","text":"b"}]}})";
  using Kinds = std::vector<std::string>;
  EXPECT_EQ(kinds_of(one), (Kinds{"1"}));
  EXPECT_EQ(kinds_of(one + two + one), (Kinds{"1", "2", "1"}));
  for (std::size_t cut = 1; cut < one.size(); ++cut)
    EXPECT_EQ(kinds_of(one.substr(0, cut) + two), (Kinds{"unreadable", "2"})) << one.substr(0, cut);
  EXPECT_EQ(kinds_of(one + two.substr(0, 20)), (Kinds{"1", "unreadable"}));
  EXPECT_EQ(kinds_of(std::string(3, '\0') + one), (Kinds{"1"}));
  EXPECT_EQ(kinds_of("\xEF\xBB\xBF" + one), (Kinds{"1"}));
  EXPECT_EQ(kinds_of(one.substr(0, 30)), (Kinds{"unreadable"}));
}

}  // namespace
}  // namespace muniment::cli
