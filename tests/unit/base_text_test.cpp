#include "base/text.hpp"

#include <gtest/gtest.h>

namespace muniment {
namespace {

TEST(Text, APreviewIsCutBetweenCharacters) {
  EXPECT_EQ(preview("short", 5), "short");
  EXPECT_EQ(preview("longer", 5), "lo…");
  EXPECT_EQ(preview("ääää", 7), "ää…");
  EXPECT_EQ(preview("ääää", 6), "ä…");
  EXPECT_EQ(preview("abc", 2), "");
  EXPECT_EQ(preview("😀😀", 7), "😀…");
}

TEST(Text, TerminalControlsAreShownInsteadOfObeyed) {
  EXPECT_EQ(escape_for_terminal("a\x1b[31mred\x07\r\n\tb"), "a\\x1b[31mred\\x07\\x0d\n\tb");
  EXPECT_EQ(escape_for_terminal("\xC2\x9B"
                                "31m"),
            "\\u{009b}31m");
  EXPECT_EQ(escape_for_terminal("\x7f"), "\\x7f");
  EXPECT_EQ(escape_json_for_terminal("{\"a\":\"\x7f\xC2\x9B\u202e\U000E0001é\"}\r\n"),
            "{\"a\":\"\\u007f\\u009b\\u202e\\udb40\\udc01é\"} \n");
}

TEST(Text, BidirectionalAndInvisibleCharactersAreShown) {
  EXPECT_EQ(escape_for_terminal("a\u202Eb\u2066c\u200Bd\uFEFF"), "a\\u{202e}b\\u{2066}c\\u{200b}d\\u{feff}");
}

TEST(Text, OtherTextStaysAndOtherBytesAreShown) {
  EXPECT_EQ(escape_for_terminal("ä€😀 \\x1b"), "ä€😀 \\x1b");
  EXPECT_EQ(escape_for_terminal("a\xFF\xC3"), "a\\xff\\xc3");
}

TEST(Text, NumbersAreGroupedByThousands) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(61441), "61,441");
  EXPECT_EQ(grouped(1234567890), "1,234,567,890");
}

TEST(Text, SizesHaveTheUnitThatFits) {
  EXPECT_EQ(human_size(0), "0 B");
  EXPECT_EQ(human_size(1023), "1023 B");
  EXPECT_EQ(human_size(1536), "1.5 KiB");
  EXPECT_EQ(human_size(1024 * 1024 - 1), "1.0 MiB");
  EXPECT_EQ(human_size(UINT64_MAX), "16.0 EiB");
}

TEST(Text, DurationsHaveTheUnitThatFits) {
  EXPECT_EQ(human_duration(999), "999 µs");
  EXPECT_EQ(human_duration(1'500), "1.5 ms");
  EXPECT_EQ(human_duration(999'990), "1.0 s");
  EXPECT_EQ(human_duration(12'400'000), "12.4 s");
  EXPECT_EQ(human_duration(59'990'000), "1 min 0 s");
  EXPECT_EQ(human_duration(3'599'600'000), "1 h 0 min");
  EXPECT_EQ(human_duration(90'000'000'000), "1 d 1 h");
  EXPECT_EQ(human_duration(-1'500), "-1.5 ms");
}

}  // namespace
TEST(Lines, AreTakenOneByOneAndOnlyWhereTheyEnd) {
  std::string_view text = "a\n\nrest";
  EXPECT_EQ(take_line(text), "a");
  EXPECT_EQ(take_line(text), "");
  EXPECT_EQ(take_line(text), std::nullopt);
  EXPECT_EQ(text, "rest");
}

TEST(Decimals, AreReadAsTheyAreWrittenOrNotAtAll) {
  EXPECT_EQ(parse_decimal("0"), 0);
  EXPECT_EQ(parse_decimal("9223372036854775807"), INT64_MAX);
  for (const std::string_view bad : {"", "00", "007", "-1", "+1", " 1", "1 ", "1.0", "0x1", "9223372036854775808"}) {
    EXPECT_EQ(parse_decimal(bad), std::nullopt) << bad;
  }
}

}  // namespace muniment
