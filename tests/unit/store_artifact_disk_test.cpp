// Tests of puts that share one sync of a folder: its result, success or error, is every put's result.
#include "store/files/artifact_disk.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

namespace muniment::store {
namespace {

Fd folder() { return Fd(::open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC)); }

// Returns a descriptor that cannot be synced.
Fd pipe_end() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ::close(ends[1]);
  return Fd(ends[0]);
}

TEST(GroupSync, AnswersEverybodyWhoWaits) {
  GroupSync group;
  const Fd synced = folder();
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 50; ++turn) {
        if (group.sync(synced, "staging", group.begin())) ++good;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 16 * 50);
}

TEST(GroupSync, AFailureIsToldToAllThatHadBegunAndToNobodyElse) {
  GroupSync group;
  const Fd good = folder();
  const Fd bad = pipe_end();
  const std::uint64_t before = group.begin();
  const Status failed = group.sync(bad, "staging", group.begin());
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find("staging"), std::string::npos) << failed.error().message;
  EXPECT_FALSE(group.sync(good, "staging", before)) << "its entry may be what the failure lost";
  EXPECT_TRUE(group.sync(good, "staging", group.begin()));
}

}  // namespace
}  // namespace muniment::store
