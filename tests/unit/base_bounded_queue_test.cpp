#include "base/bounded_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace muniment {
namespace {

TEST(BoundedQueue, AFullQueueLeavesTheItemToItsOwner) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  EXPECT_TRUE(queue.try_push(std::make_unique<int>(1)));
  auto second = std::make_unique<int>(2);
  EXPECT_FALSE(queue.try_push(std::move(second)));
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(**queue.pop(), 1);
  EXPECT_TRUE(queue.try_push(std::move(second)));
  EXPECT_EQ(queue.size(), 1U);
}

TEST(BoundedQueue, PopAllTakesEverythingInOrder) {
  BoundedQueue<int> queue(10);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(queue.try_push(int{i}));
  EXPECT_EQ(queue.pop_all(), (std::deque<int>{0, 1, 2}));
  EXPECT_EQ(queue.size(), 0U);
}

TEST(BoundedQueue, AClosedQueueIsDrainedAndThenEmpty) {
  BoundedQueue<int> queue(10);
  EXPECT_TRUE(queue.try_push(1));
  queue.close();
  EXPECT_TRUE(queue.closed());
  EXPECT_FALSE(queue.try_push(2));
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_EQ(queue.pop(), std::nullopt);
  EXPECT_TRUE(queue.pop_all().empty());
}

TEST(BoundedQueue, ClosingWakesWhoWaits) {
  BoundedQueue<int> queue(1);
  std::thread waiter([&] { EXPECT_EQ(queue.pop(), std::nullopt); });
  queue.close();
  waiter.join();
}

TEST(BoundedQueue, ADeadlineEndsTheWait) {
  BoundedQueue<int> queue(1);
  EXPECT_TRUE(queue.pop_all_until(std::chrono::steady_clock::now() + std::chrono::milliseconds(5)).empty());
  EXPECT_FALSE(queue.closed());
}

TEST(BoundedQueue, ManyThreadsLoseAndDoubleNothing) {
  constexpr int producers = 4;
  constexpr int each = 5'000;
  BoundedQueue<int> queue(64);
  std::vector<std::atomic<int>> seen(producers * each);
  std::vector<std::thread> threads;
  for (int p = 0; p < producers; ++p) {
    threads.emplace_back([&, p] {
      for (int i = 0; i < each; ++i) {
        int item = p * each + i;
        while (!queue.try_push(std::move(item))) std::this_thread::yield();
      }
    });
  }
  std::thread one_by_one([&] {
    while (const auto item = queue.pop()) ++seen[static_cast<std::size_t>(*item)];
  });
  std::thread all_at_once([&] {
    for (auto items = queue.pop_all(); !items.empty(); items = queue.pop_all()) {
      for (int item : items) ++seen[static_cast<std::size_t>(item)];
    }
  });
  for (std::thread& thread : threads) thread.join();
  queue.close();
  one_by_one.join();
  all_at_once.join();
  EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](const auto& count) { return count == 1; }));
}

}  // namespace
}  // namespace muniment
