#include "mcp/server.hpp"

#include <fmt/format.h>

#include "base/limits.hpp"
#include "unit/mcp_fixture.hpp"

namespace muniment::mcp {
namespace {

using namespace std::chrono_literals;

struct Sealing {
  FakeClock clock;
  Server server{clock, {"1.2.3", {}, nullptr}};
};

TEST(McpSeal, WhatIsSealedComesBack) {
  const Sealing made;
  for (const std::string& text :
       {std::string(), std::string("a"), std::string("line\nfeed\0null", 14), std::string(100'000, 'x')}) {
    const std::string sealed = made.server.seal("state", "uid:1", text);
    EXPECT_EQ(made.server.unseal("state", "uid:1", sealed), text);
  }
}

TEST(McpSeal, AChangedByteAnywhereIsRefused) {
  const Sealing made;
  const std::string sealed = made.server.seal("state", "uid:1", "the text");
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    for (const int bit : {0, 1, 2, 3, 4, 5, 6, 7}) {
      std::string tampered = sealed;
      tampered[i] = static_cast<char>(static_cast<unsigned char>(tampered[i]) ^ (1U << bit));
      EXPECT_FALSE(made.server.unseal("state", "uid:1", tampered)) << i << " " << bit;
    }
  }
}

TEST(McpSeal, AShorterALongerAndAForeignTextAreRefused) {
  const Sealing made;
  const std::string sealed = made.server.seal("state", "uid:1", "the text");
  for (std::size_t size = 0; size < sealed.size(); ++size)
    EXPECT_FALSE(made.server.unseal("state", "uid:1", sealed.substr(0, size))) << size;
  EXPECT_FALSE(made.server.unseal("state", "uid:1", sealed + "A"));
  EXPECT_FALSE(made.server.unseal("state", "uid:1", sealed + "AAAA"));
  for (const char* text : {"", "=", "====", "not base64!", "Cg==", "MQo="})
    EXPECT_FALSE(made.server.unseal("state", "uid:1", text)) << text;
}

TEST(McpSeal, AnotherOwnerPurposeOrServerIsRefused) {
  const Sealing made, other;
  const std::string sealed = made.server.seal("state", "uid:1", "the text");
  EXPECT_FALSE(made.server.unseal("state", "uid:10", sealed));
  EXPECT_FALSE(made.server.unseal("cursor", "uid:1", sealed));
  EXPECT_FALSE(made.server.unseal("state\nuid", "1", sealed));
  EXPECT_FALSE(other.server.unseal("state", "uid:1", sealed));
}

TEST(McpSeal, ItIsValidForTenMinutes) {
  Sealing made;
  const std::string sealed = made.server.seal("state", "uid:1", "the text");
  made.clock.pass(10min);
  EXPECT_TRUE(made.server.unseal("state", "uid:1", sealed));
  made.clock.pass(1us);
  EXPECT_FALSE(made.server.unseal("state", "uid:1", sealed));
}

TEST(McpHandles, NoMoreThanTheLimitAreOpenAtOnce) {
  Handles handles;
  const Monotonic now{};
  for (std::size_t i = 0; i < limits::mcp_handles_max; ++i) ASSERT_TRUE(handles.open("uid:1", now));
  const auto refused = handles.open("uid:1", now);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::over_budget);
  EXPECT_EQ(refused.error().limit, static_cast<std::int64_t>(limits::mcp_handles_max));
  EXPECT_TRUE(handles.open("uid:1", now + 1h + 1s)) << "those that expired leave room";
}

TEST(McpHandles, TheOldestResultsAreForgottenWhenAllHaveTooManyBytes) {
  Handles handles;
  Monotonic now{};
  std::vector<std::string> opened;
  for (int i = 0; i < 4; ++i) opened.push_back(*handles.open("uid:1", now += 1s));
  const std::string half(limits::mcp_handles_bytes_max / 2, 'x');
  handles.finish(opened[2], half);
  handles.finish(opened[1], half);
  handles.finish(opened[1], half);
  EXPECT_TRUE(handles.find(opened[1], "uid:1", now)->result);
  handles.finish(opened[3], "{}");
  EXPECT_TRUE(handles.find(opened[0], "uid:1", now)) << "it goes on";
  EXPECT_FALSE(handles.find(opened[1], "uid:1", now));
  EXPECT_TRUE(handles.find(opened[2], "uid:1", now)->result);
  EXPECT_EQ(handles.find(opened[3], "uid:1", now)->result, "{}");
}

TEST(McpHandles, AnUnknownHandleHasNoResult) {
  Handles handles;
  handles.finish("call-0", "{}");
  EXPECT_FALSE(handles.find("call-0", "uid:1", Monotonic{}));
  EXPECT_FALSE(handles.find("", "", Monotonic{}));
}

}  // namespace
}  // namespace muniment::mcp
