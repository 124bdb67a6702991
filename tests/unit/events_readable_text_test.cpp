// Tests of the readable text of events, type by type.
#include "events/readable_text.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace muniment::events {
namespace {

// Returns the parts, each in brackets; an artifact as the first digits of its id.
std::string read(std::string_view type, std::string_view body) {
  const auto parsed = json::parse(body);
  if (!parsed) return parsed.error().message;
  const ReadableText text = readable_text(type, parsed->root());
  std::string out = text.name + (text.failed ? "!" : "");
  for (const TextPart& part : text.parts)
    out += "[" + (part.artifact_id ? "@" + part.artifact_id->text().substr(0, 4) : part.text) + "]";
  return out;
}

TEST(ReadableText, OfContentIsItsWordsPartByPart) {
  EXPECT_EQ(
      read(
          "message.added",
          R"({"role":"user","content":[{"type":"text","content":"a\nb"},{"type":"text","content":""},{"type":"reasoning","content":"c"}]})"),
      "user[a\nb][c]");
  EXPECT_EQ(read("message.added",
                 R"({"role":"assistant","content":[{"type":"tool_call","name":"bash","arguments":{"command":"ls"}},
                                   {"type":"tool_call_response","response":"x.txt"},{"type":"uri","uri":"https://x"}]})"),
            R"(assistant[bash {"command":"ls"}][x.txt])");
  EXPECT_EQ(read("thought.recorded", R"({"content":[{"type":"reasoning","content":"because"}]})"), "[because]");
  EXPECT_EQ(read("context.compacted", R"({"trigger":"limit","summary":[{"type":"text","content":"so far"}]})"),
            "[so far]");
}

TEST(ReadableText, OfToolsAndCommandsIsWhatWasAskedAndWhatCameOut) {
  EXPECT_EQ(read("tool.called", R"({"call_id":"c","name":"bash","kind":"command","arguments":"ls -l"})"),
            "bash[bash ls -l]");
  EXPECT_EQ(read("tool.called", R"({"call_id":"c","name":"now","kind":"function"})"), "now[now]");
  EXPECT_EQ(read("tool.returned", R"({"call_id":"c","status":"ok","content":[{"type":"text","content":"done"}]})"),
            "[done]");
  EXPECT_EQ(read("tool.returned", R"({"call_id":"c","status":"timeout","content":[],"error":{"message":"too slow"}})"),
            "![too slow]");
  EXPECT_EQ(read("command.started", R"({"call_id":"c","argv":["make","-j","2"]})"), "[make -j 2]");
  EXPECT_EQ(read("command.ended", R"({"call_id":"c","exit_code":2})"), "!");
}

TEST(ReadableText, OfAnErrorIsItsKindItsMessageAndItsStack) {
  EXPECT_EQ(read("error.raised", R"({"error_type":"E","message":"m","stack":"s"})"), "E![E: m][s]");
  EXPECT_EQ(read("step.ended", R"({"status":"error","error":{"message":"m"}})"), "![m]");
  EXPECT_EQ(read("step.ended", R"({"status":"ok"})"), "");
  EXPECT_EQ(read("run.ended", R"({"outcome":"failure","summary":"nothing","error":{"message":"m"}})"), "![nothing][m]");
  EXPECT_EQ(read("run.halted", R"({"code":"SYSTEM_ERROR","reason":"a file is gone"})"),
            "SYSTEM_ERROR![a file is gone]");
}

TEST(ReadableText, AReferenceCountsWhenItIsTextAndHasAPreview) {
  const auto with = [](std::string_view rest) {
    return read("tool.returned",
                R"({"call_id":"c","status":"ok","content":[{"artifact_id":"0190b8e2-1111-7abc-8def-0123456789ab",)" +
                    std::string(rest) + "}]}");
  };
  EXPECT_EQ(with(R"("mime_type":"text/plain","preview":"a")"), "[@0190]");
  EXPECT_EQ(with(R"("mime_type":"application/json","preview":"{")"), "[@0190]");
  EXPECT_EQ(with(R"("mime_type":"text/plain")"), "");
  EXPECT_EQ(with(R"("mime_type":"image/png","preview":"a")"), "");
}

TEST(ReadableText, WhatIsOfAnotherShapeSaysNothing) {
  for (const std::string_view type : readable_types) {
    EXPECT_LE(read(type, "{}").size(), 1U) << type;
    EXPECT_LE(read(type, R"({"content":"x","error":7,"argv":{},"stdout":[],"summary":3})").size(), 1U) << type;
  }
  EXPECT_FALSE(is_readable("run.started"));
  EXPECT_FALSE(is_readable("x.acme.note"));
  EXPECT_TRUE(std::ranges::is_sorted(readable_types));
}

}  // namespace
}  // namespace muniment::events
