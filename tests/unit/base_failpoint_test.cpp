#include "base/process/failpoint.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

namespace muniment {
namespace {

TEST(Failpoint, AnUnarmedPlaceDoesNothing) {
  failpoint::arm("");
  EXPECT_FALSE(FAILPOINT_FAILS("a.place"));
}

TEST(Failpoint, TheNthPassAloneFails) {
  failpoint::arm("a.place=error@3");
  EXPECT_FALSE(FAILPOINT_FAILS("a.place"));
  EXPECT_FALSE(FAILPOINT_FAILS("a.place"));
  EXPECT_TRUE(FAILPOINT_FAILS("a.place"));
  EXPECT_FALSE(FAILPOINT_FAILS("a.place"));
}

TEST(Failpoint, WithAPlusEveryLaterPassFailsToo) {
  failpoint::arm("other=error@1,a.place=error@2+");
  EXPECT_FALSE(FAILPOINT_FAILS("a.place"));
  EXPECT_TRUE(FAILPOINT_FAILS("a.place"));
  EXPECT_TRUE(FAILPOINT_FAILS("a.place"));
}

TEST(Failpoint, SleepDawdlesAndGoesOn) {
  failpoint::arm("a.place=sleep:50@1");
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(FAILPOINT_FAILS("a.place"));
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(50));
}

TEST(Failpoint, WaitGoesOnOnceTheFileIsThere) {
  const std::string path = ::testing::TempDir() + "muniment-failpoint-" + std::to_string(::getpid());
  ::unlink(path.c_str());
  failpoint::arm("a.place=wait:" + path + "@1");
  std::atomic<bool> passed{false};
  std::thread waiting([&] {
    FAILPOINT("a.place");
    passed = true;
  });
  EXPECT_FALSE(passed);
  std::ofstream(path).flush();
  waiting.join();
  ::unlink(path.c_str());
  EXPECT_TRUE(passed);
  EXPECT_FALSE(FAILPOINT_FAILS("a.place"));
}

TEST(Failpoint, KillEndsTheProcessThere) {
  const pid_t child = ::fork();
  if (child == 0) {
    failpoint::arm("a.place=kill@1");
    FAILPOINT("a.place");
    ::_exit(0);
  }
  int how = 0;
  ASSERT_EQ(::waitpid(child, &how, 0), child);
  EXPECT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
}

TEST(FailpointDeathTest, APlanThatCannotBeReadStopsTheProcess) {
  EXPECT_DEATH(failpoint::arm("a.place=explode"), "cannot read");
  EXPECT_DEATH(failpoint::arm("a.place=error@x"), "cannot read");
  EXPECT_DEATH(failpoint::arm("no-action"), "cannot read");
}

}  // namespace
}  // namespace muniment
