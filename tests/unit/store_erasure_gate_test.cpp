// Tests of the gate between new records and the erasure of the content that they refer to.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "store/logs/erasure_gate.hpp"

namespace muniment::store {
namespace {

using namespace std::chrono_literals;

class Gate : public ::testing::Test {
 protected:
  static Deadline in(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }

  Tail tail_;
  ErasureGate gate_;
};

TEST_F(Gate, WhoPassesBeforeAnErasureAndAfterItIsToldApart) {
  const auto before = gate_.pass(in(0ms));
  ASSERT_TRUE(before);
  {
    const auto closed = gate_.close(tail_, in(1s), "erased");
    ASSERT_TRUE(closed) << closed.error().message;
  }
  const auto after = gate_.pass(in(0ms));
  ASSERT_TRUE(after);
  EXPECT_NE(*before, *after);
}

TEST_F(Gate, WhoComesWhileItIsClosedWaitsAndIsToldWhatFor) {
  auto closed = gate_.close(tail_, in(1s), "archived");
  ASSERT_TRUE(closed);
  const auto late = gate_.pass(in(20ms));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Errc::unavailable);
  EXPECT_TRUE(late.error().message.starts_with("content is being archived")) << late.error().message;
  EXPECT_EQ(late.error().retry_after_ms, 1'000);
  auto waiting = std::async(std::launch::async, [&] { return gate_.pass(in(10s)).ok(); });
  std::this_thread::sleep_for(20ms);
  closed->reset();
  EXPECT_TRUE(waiting.get());
}

TEST_F(Gate, NoMoreWaitThanMay) {
  constexpr std::size_t most = 2;
  gate_.set_waiting_max(most);
  auto closed = gate_.close(tail_, in(1s), "erased");
  ASSERT_TRUE(closed);
  std::vector<std::future<bool>> waiting;
  std::atomic<std::size_t> refused = 0;
  for (std::size_t i = 0; i < most + 3; ++i) {
    waiting.push_back(std::async(std::launch::async, [&] {
      const bool passed = gate_.pass(in(30s)).ok();
      if (!passed) ++refused;
      return passed;
    }));
  }
  const auto give_up = in(20s);
  while (refused < 3 && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(refused, 3U) << "at once, and not at their deadlines";
  closed->reset();
  std::size_t passed = 0;
  for (auto& one : waiting) {
    if (one.get()) ++passed;
  }
  EXPECT_EQ(passed, most);
}

TEST_F(Gate, OneAfterTheOther) {
  auto first = gate_.close(tail_, in(1s), "erased");
  ASSERT_TRUE(first);
  EXPECT_FALSE(gate_.close(tail_, in(20ms), "archived"));
  first->reset();
  EXPECT_TRUE(gate_.close(tail_, in(1s), "archived"));
  EXPECT_TRUE(gate_.pass(in(0ms))) << "what failed to close it has left it open";
}

TEST_F(Gate, WhatIsNumberedIsWaitedForAndWhereItDoesNotComeTheGateOpensAgain) {
  {
    ErasureGate::Numbering numbering(gate_);
    numbering.next_seq = 5;
  }
  EXPECT_FALSE(gate_.close(tail_, in(20ms), "erased"));
  EXPECT_TRUE(gate_.pass(in(0ms)));
  tail_.start_at(5);
  EXPECT_TRUE(gate_.close(tail_, in(1s), "erased"));
}

}  // namespace
}  // namespace muniment::store
