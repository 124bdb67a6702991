#include "evidence/pointer.hpp"

#include <gtest/gtest.h>

namespace muniment::evidence {
namespace {

constexpr std::string_view id = "0190b8e2-1111-7abc-8def-0123456789ab";

TEST(Pointer, AnArtifactHasARunAnIdAndMaybeASpan) {
  const auto whole = parse_pointer("artifact://r1/" + std::string(id));
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->kind, PointerKind::artifact);
  EXPECT_EQ(whole->run_id, "r1");
  EXPECT_EQ(whole->id.text(), id);
  EXPECT_FALSE(whole->span);
  EXPECT_EQ(whole->name(), "r1/" + std::string(id));

  const auto span = parse_pointer("artifact://r1/" + std::string(id) + "#b10-20");
  ASSERT_TRUE(span);
  EXPECT_EQ(span->span->start, 10);
  EXPECT_EQ(span->span->end, 20);
  EXPECT_EQ(span->whole(), whole->text);
}

TEST(Pointer, TheVersionOfEvidenceComesAfterTheFragment) {
  const auto pointer = parse_pointer("ev://alexandria/docs%2Fintro.md#p3?v=h1");
  ASSERT_TRUE(pointer) << pointer.error().message;
  EXPECT_EQ(pointer->corpus, "alexandria");
  EXPECT_EQ(pointer->document, "docs/intro.md");
  EXPECT_EQ(pointer->fragment, "p3");
  EXPECT_EQ(pointer->revision, "h1");
  EXPECT_EQ(pointer->text, "ev://alexandria/docs%2Fintro.md#p3?v=h1");
}

TEST(Pointer, EvidenceWithoutAVersionParses) {
  const auto pointer = parse_pointer("ev://c/d#b0-10");
  ASSERT_TRUE(pointer);
  EXPECT_TRUE(pointer->revision.empty());
}

TEST(Pointer, AnEventOfARunIsEvidenceInTheCorpusRun) {
  const auto pointer = parse_pointer("ev://run/r1#e17?v=0123456789abcdef");
  ASSERT_TRUE(pointer);
  EXPECT_EQ(pointer->run_id, "r1");
  EXPECT_EQ(pointer->seq, 17);
}

TEST(Pointer, APassageOfAnEventHasANumber) {
  const auto pointer = parse_pointer("ev://run/my.run#e17.2?v=0123456789abcdef");
  ASSERT_TRUE(pointer) << pointer.error().message;
  EXPECT_EQ(pointer->run_id, "my.run");
  EXPECT_EQ(pointer->seq, 17);
  EXPECT_EQ(pointer->passage, 2);
  EXPECT_EQ(event_pointer("my.run#e17", 2, "0123456789abcdef"), pointer->text);
  EXPECT_EQ(event_pointer("my.run#e17", std::nullopt, "h"), "ev://run/my.run#e17?v=h");
  EXPECT_FALSE(parse_pointer("ev://run/r1#e17?v=h")->passage);
  for (const char* bad : {"ev://run/r1#e?v=h", "ev://run/r1#e1.?v=h", "ev://run/r1#e1.x?v=h", "ev://run/r1#e1.-1?v=h",
                          "ev://run/r1#e.1?v=h", "ev://run/r1#p1?v=h", "ev://run/r1#pus?v=h", "ev://run/r1#?v=h",
                          "ev://run/r1#b0-1?v=h", "ev://c/d#e1.2?v=h", "ev://run/-x#e1?v=h"}) {
    EXPECT_FALSE(parse_pointer(bad)) << bad;
  }
}

TEST(Pointer, TheOtherSchemesParse) {
  EXPECT_EQ(parse_pointer("manifest://" + std::string(id))->id.text(), id);
  EXPECT_EQ(parse_pointer("snap://r1/918")->seq, 918);
  EXPECT_EQ(parse_pointer("run://r1")->run_id, "r1");
  EXPECT_EQ(parse_pointer("log://runs/r1/events")->run_id, "r1");
  EXPECT_EQ(parse_pointer("log://runs/_log/events")->run_id, "_log");
  EXPECT_EQ(parse_pointer("log://validation")->kind, PointerKind::log);
  EXPECT_EQ(parse_pointer("log://metrics")->run_id, "");
}

TEST(Pointer, WhatDoesNotParseIsAnInvalidArgument) {
  const std::string artifact = "artifact://r1/" + std::string(id);
  for (const std::string& text : {std::string(),
                                  std::string("artifact://"),
                                  std::string("artifact://r1"),
                                  std::string("artifact://r1/nope"),
                                  std::string("artifact://../") + std::string(id),
                                  "ARTIFACT://r1/" + std::string(id),
                                  artifact + "#b5-4",
                                  artifact + "#b-1-4",
                                  artifact + "#b1",
                                  artifact + "#p1",
                                  artifact + "#b1-99999999999999999999",
                                  artifact + "/x",
                                  artifact + " ",
                                  std::string("snap://r1/-1"),
                                  std::string("snap://r1/1x"),
                                  std::string("run://a/b"),
                                  std::string("run://"),
                                  std::string("log://runs//events"),
                                  std::string("log://runs/events"),
                                  std::string("log://else"),
                                  std::string("ev://c/d?v=h1#p1"),
                                  std::string("ev://c#p1"),
                                  std::string("ev://c/d#x1?v=h"),
                                  std::string("ev://c/d#p?v=h"),
                                  std::string("ev://run/r1#p1?v=h"),
                                  std::string("ev://c/%zz#p1?v=h"),
                                  std::string("http://x"),
                                  std::string("run://a\nb"),
                                  "run://" + std::string(3000, 'a')}) {
    const auto pointer = parse_pointer(text);
    ASSERT_FALSE(pointer) << text;
    EXPECT_EQ(pointer.error().code, Errc::invalid_argument) << text;
  }
}

TEST(Pointer, ADraftsCitationsAreFoundInOrder) {
  const std::string draft = "It works [ref:run://r1], twice [ref:snap://r1/9]. [ref:unclosed";
  const auto citations = find_citations(draft);
  ASSERT_EQ(citations.size(), 2u);
  EXPECT_EQ(citations[0].pointer, "run://r1");
  EXPECT_EQ(draft.substr(citations[0].begin, citations[0].end - citations[0].begin), "[ref:run://r1]");
  EXPECT_EQ(citations[1].pointer, "snap://r1/9");
}

}  // namespace
}  // namespace muniment::evidence
