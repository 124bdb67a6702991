#include "base/ids.hpp"

#include <gtest/gtest.h>

#include <array>

namespace muniment {
namespace {

std::string message_of(const Status& status) { return status ? "" : status.error().message; }

TEST(Uuid, Version7IsOrderedByItsTimeToTheMicrosecond) {
  const Uuid first = make_uuid_v7(Time{1'795'269'731'000'123});
  const Uuid second = make_uuid_v7(Time{1'795'269'731'000'124});
  EXPECT_LT(first, second);
  EXPECT_EQ(first.text().substr(0, 13), "01a1fe6a-22b8");  // 1,795,269,731,000 ms
  EXPECT_EQ(first.text()[14], '7');
  EXPECT_NE(std::string("89ab").find(first.text()[19]), std::string::npos);
  EXPECT_NE(first, make_uuid_v7(Time{1'795'269'731'000'123}));
}

TEST(Uuid, Version8IsTheStartOfTheNamesHash) {
  EXPECT_EQ(make_uuid_v8("abc").text(), "ba7816bf-8f01-8fea-8141-40de5dae2223");
  EXPECT_NE(make_uuid_v8("abc"), make_uuid_v8("abd"));
}

TEST(Uuid, TextIsReadInEitherCaseAndNothingElse) {
  const Uuid id = make_uuid_v8("abc");
  EXPECT_EQ(parse_uuid(id.text()), id);
  EXPECT_EQ(parse_uuid("BA7816BF-8F01-8FEA-8141-40DE5DAE2223"), id);
  for (const char* text : {"", "ba7816bf8f018fea814140de5dae2223", "{a7816bf-8f01-8fea-8141-40de5dae2223",
                           "ba7816bf-8f01-8fea-8141-40de5dae222", "ba7816bf-8f01-8fea-8141-40de5dae22233",
                           "ba7816bf-8f018-fea-8141-40de5dae2223", "ga7816bf-8f01-8fea-8141-40de5dae2223"}) {
    EXPECT_EQ(parse_uuid(text), std::nullopt) << text;
  }
}

TEST(RunId, LettersDigitsAndThreeMarksAreAllowed) {
  EXPECT_TRUE(check_run_id("r1"));
  EXPECT_TRUE(check_run_id("0.A_b-c"));
  EXPECT_TRUE(check_run_id(std::string(128, 'a')));
}

TEST(RunId, WhatIsRefusedIsNamed) {
  EXPECT_EQ(message_of(check_run_id("")), "run_id is empty");
  EXPECT_EQ(message_of(check_run_id("..")), "run_id starts with \".\". Start it with a letter or a digit.");
  EXPECT_EQ(message_of(check_run_id("_log")),
            "run_id starts with \"_\", which is reserved for the daemon. Start it with a letter "
            "or a digit.");
  EXPECT_EQ(
      message_of(check_run_id("a/b")),
      "run_id has \"/\" at byte 1; letters, digits and . _ - are allowed. Put an id of another system into external_id.");
  EXPECT_EQ(
      message_of(check_run_id(std::string_view("a\0", 2))),
      "run_id has byte 0x00 at byte 1; letters, digits and . _ - are allowed. Put an id of another system into external_id.");
  EXPECT_EQ(message_of(check_run_id(std::string(300, 'a'))),
            "run_id is 300 bytes, limit 128. Put an id of another system into external_id.");
  EXPECT_FALSE(check_run_id(std::string(129, 'a')));
}

TEST(StepId, FiveMoreMarksAreAllowedUpToTwoHundredEncodedBytes) {
  EXPECT_TRUE(check_step_id("turn:3|a@b+c=d"));
  EXPECT_TRUE(check_step_id(std::string(200, 'a')));
  EXPECT_FALSE(check_step_id(std::string(201, 'a')));
  EXPECT_TRUE(check_step_id("a" + std::string(66, ':')));  // 1 + 3 × 66 = 199
  EXPECT_EQ(message_of(check_step_id("a" + std::string(67, ':'))),
            "step_id is 202 bytes percent-encoded, limit 200. Shorten it.");
  EXPECT_FALSE(check_step_id("a/b"));
  EXPECT_FALSE(check_step_id(":a"));
}

TEST(PercentEncoding, OnlyPlainNamesStayAsTheyAre) {
  EXPECT_EQ(percent_encode("a.b_c-9"), "a.b_c-9");
  EXPECT_EQ(percent_encode("turn:3/x"), "turn%3A3%2Fx");
  EXPECT_EQ(percent_encode(".."), "%2E%2E");
  EXPECT_EQ(percent_encode("\xC3\xA4"), "%C3%A4");
}

TEST(PercentEncoding, DecodingGivesTheTextBackAndRefusesHalves) {
  for (std::string text : {"", ".", "..", "turn:3/x%", "\xC3\xA4"}) {
    EXPECT_EQ(percent_decode(percent_encode(text)), text);
  }
  EXPECT_EQ(percent_decode("a%2"), std::nullopt);
  EXPECT_EQ(percent_decode("a%zz"), std::nullopt);
}

TEST(ArtifactPath, IsReadableAndCannotLeaveItsFolder) {
  const Uuid id = make_uuid_v8("abc");
  EXPECT_EQ(artifact_path("r1", "", id, "text/plain; charset=utf-8"),
            "runs/r1/main/ba7816bf-8f01-8fea-8141-40de5dae2223.txt");
  EXPECT_EQ(artifact_path("..", "a:b", id, "application/json"),
            "runs/%2E%2E/a%3Ab/ba7816bf-8f01-8fea-8141-40de5dae2223.json");
  EXPECT_EQ(artifact_path("r1", "s", id, "../../x"), "runs/r1/s/ba7816bf-8f01-8fea-8141-40de5dae2223.bin");
}

TEST(Nearest, NamesATypingSlipAndNothingElse) {
  constexpr std::array<std::string_view, 3> names = {"tool.called", "tool.returned", "run.started"};
  EXPECT_EQ(nearest("tool.call", names), "tool.called");
  EXPECT_EQ(nearest("run.start", names), "run.started");
  EXPECT_EQ(nearest("zzzzzzzz", names), "");
  EXPECT_EQ(nearest("edited", std::array<std::string_view, 2>{"created", "deleted"}), "");
  EXPECT_EQ(nearest("shwo", std::array<std::string_view, 1>{"show"}), "show");
  EXPECT_EQ(nearest(std::string(1'000'000, 't'), names), "");
}

TEST(EditDistance, CountsInsertionsRemovalsAndReplacements) {
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("abc", "abc"), 0U);
}

}  // namespace
}  // namespace muniment
