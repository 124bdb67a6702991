#include "base/process/worker_thread.hpp"

#include <gtest/gtest.h>

namespace muniment {
namespace {

using namespace std::chrono_literals;

TEST(WorkerThread, WorksOnWhatItIsGivenUntilItIsStopped) {
  int given = 0, done = 0;
  WorkerThread worker;
  EXPECT_FALSE(worker.started());
  worker.start("worker", [&] {
    auto lock = worker.lock();
    while (worker.wait(lock, [&] { return given > done; })) {
      ++done;
      worker.notify();
    }
  });
  auto lock = worker.lock();
  given = 3;
  worker.notify();
  EXPECT_TRUE(worker.wait_until(lock, std::chrono::steady_clock::now() + 60s, [&] { return done == 3; }));
  EXPECT_EQ(done, 3);
  lock.unlock();
  worker.stop();
  EXPECT_FALSE(worker.started());
  EXPECT_TRUE(worker.stopping());
  worker.stop();
}

TEST(WorkerThread, StoppingEndsAPauseAtOnce) {
  bool ended = false;
  WorkerThread worker;
  worker.start("worker", [&] {
    auto lock = worker.lock();
    ended = !worker.pause(lock, 24h);
  });
  worker.stop();
  EXPECT_TRUE(ended);
}

TEST(WorkerThread, AWaitThatIsNotStoppedEndsAtItsDeadline) {
  WorkerThread worker;
  auto lock = worker.lock();
  EXPECT_TRUE(worker.wait_until(lock, std::chrono::steady_clock::now(), [] { return false; }));
  EXPECT_TRUE(worker.pause(lock, 1ms));
}

}  // namespace
}  // namespace muniment
