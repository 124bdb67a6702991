#include "base/log.hpp"

#include <gtest/gtest.h>

namespace muniment {
namespace {

constexpr std::string_view time_text = "2026-11-21T14:02:11.000123Z";

TEST(Log, LogfmtQuotesOnlyWhatNeedsIt) {
  const std::string run = "r1";
  EXPECT_EQ(log_line(LogFormat::logfmt, LogLevel::warning, time_text, "append in doubt",
                     {{"run_id", run}, {"epoch", 7}, {"up", true}, {"why", "a = \"b\""}, {"none", ""}}),
            "time=2026-11-21T14:02:11.000123Z level=warning msg=\"append in doubt\" run_id=r1 epoch=7 up=true "
            R"(why="a = \"b\"" none="")");
}

TEST(Log, ALineStaysALineAndATerminalStaysUntouched) {
  const std::string line = log_line(LogFormat::logfmt, LogLevel::info, time_text, "m\x1b[2J\nx",
                                    {{"a", "1\n2026 error \"forged\""}, {"b", "\u202E"}});
  EXPECT_EQ(line, "time=" + std::string(time_text) + R"( level=info msg="m\\x1b[2J\nx" a="1\n2026 error \"forged\"" )" +
                      R"(b="\\u{202e}")");
  EXPECT_EQ(line.find('\n'), std::string::npos);
}

TEST(Log, JsonLinesKeepNumbersAsNumbers) {
  EXPECT_EQ(log_line(LogFormat::json, LogLevel::error, time_text, "a\x1b",
                     {{"n", -3}, {"ok", false}, {"text", "x\"y"}}),
            R"({"time":"2026-11-21T14:02:11.000123Z","level":"error","msg":"a\u001b","n":-3,)"
            R"("ok":false,"text":"x\"y"})");
}

TEST(Log, WhatIsBelowTheLevelIsNotWritten) {
  set_log_level("warning");
  testing::internal::CaptureStderr();
  log_info("not this", {{"a", 1}});
  log_warning("but this", {{"a", 1}});
  set_log_level("off");
  log_error("nor this");
  set_log_level("debug");
  set_log_format(LogFormat::json);
  log_debug("and this");
  const std::string written = testing::internal::GetCapturedStderr();
  set_log_level("info");
  set_log_format(LogFormat::logfmt);
  EXPECT_EQ(written.find("not this"), std::string::npos);
  EXPECT_NE(written.find(" level=warning msg=\"but this\" a=1\n"), std::string::npos);
  EXPECT_EQ(written.find("nor this"), std::string::npos);
  EXPECT_NE(written.find("\"msg\":\"and this\"}\n"), std::string::npos);
}

}  // namespace
}  // namespace muniment
