#include "base/log.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "support/temporary_folder.hpp"

namespace muniment {
namespace {

constexpr std::string_view time_text = "2026-11-21T14:02:11.000123Z";

TEST(Log, LogfmtQuotesOnlyWhatNeedsIt) {
  const std::string run = "r1";
  EXPECT_EQ(
      log_line(LogFormat::logfmt, LogLevel::warning, time_text, "appender", "append in doubt",
               {{"run_id", run}, {"epoch", 7}, {"up", true}, {"why", "a = \"b\""}, {"none", ""}}),
      "time=2026-11-21T14:02:11.000123Z level=warning component=appender msg=\"append in doubt\" run_id=r1 epoch=7 up=true "
      R"(why="a = \"b\"" none="")");
}

TEST(Log, ALineStaysALineAndATerminalStaysUntouched) {
  const std::string line = log_line(LogFormat::logfmt, LogLevel::info, time_text, "test", "m\x1b[2J\nx",
                                    {{"a", "1\n2026 error \"forged\""}, {"b", "\u202E"}});
  EXPECT_EQ(line, "time=" + std::string(time_text) +
                      R"( level=info component=test msg="m\\x1b[2J\nx" a="1\n2026 error \"forged\"" )" +
                      R"(b="\\u{202e}")");
  EXPECT_EQ(line.find('\n'), std::string::npos);
}

TEST(Log, JsonLinesKeepNumbersAsNumbers) {
  EXPECT_EQ(
      log_line(LogFormat::json, LogLevel::error, time_text, "search_child", "a\x1b",
               {{"n", -3}, {"ok", false}, {"text", "x\"y\n\u202E"}}),
      R"({"time":"2026-11-21T14:02:11.000123Z","level":"error","component":"search_child","message":"a\u001b","n":-3,)"
      R"("ok":false,"text":"x\"y\n\u202e"})");
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
  EXPECT_NE(written.find(" level=warning component=base_log_test msg=\"but this\" a=1\n"), std::string::npos);
  EXPECT_EQ(written.find("nor this"), std::string::npos);
  EXPECT_NE(written.find("\"component\":\"base_log_test\",\"message\":\"and this\"}\n"), std::string::npos);
}

TEST(Log, AChildWritesAsItsParentDoes) {
  EXPECT_EQ(log_settings(), "text info");
  set_log_level("warn");  // the level of the configuration
  set_log_format(LogFormat::json);
  const std::string settings = log_settings();
  EXPECT_EQ(settings, "json warning");
  take_log_settings("text info");
  EXPECT_EQ(log_settings(), "text info");
  take_log_settings("nonsense");
  EXPECT_EQ(log_settings(), "text info");
}

TEST(Log, AFileIsCutAtItsLimitAndItsEndKept) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/daemon.log";
  EXPECT_TRUE(keep_log_within(path, 100));  // the file does not exist
  const auto write = [&](const std::string& text) { std::ofstream(path, std::ios::app) << text; };
  const auto read = [](const std::string& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  };
  std::ofstream writer(path, std::ios::app);  // keeps the file open, as the daemon does
  for (int i = 0; i < 10; ++i) write("line " + std::to_string(i) + "...\n");
  EXPECT_TRUE(keep_log_within(path, 100));
  EXPECT_EQ(read(path).size(), 100U);  // at the limit, not over it
  write("x");
  EXPECT_TRUE(keep_log_within(path, 100));
  EXPECT_EQ(read(path), "");
  EXPECT_EQ(read(path + ".1"), "line 6...\nline 7...\nline 8...\nline 9...\nx");
  writer << "goes on\n" << std::flush;
  EXPECT_EQ(read(path), "goes on\n");
}

}  // namespace
}  // namespace muniment
