// A bounded pool of worker threads, each with one read connection. Blocking work runs here, never on the loop thread.
// The worker that became idle last gets the next task, because the caches of its Postgres backend are warm.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "store/read/reader.hpp"

namespace muniment::gateway {

class WorkerPool {
 public:
  using Task = std::function<void(store::Reader&)>;

  WorkerPool(std::size_t workers, const store::LogPlace& place, std::size_t tasks_max);
  ~WorkerPool();  // calls `stop`

  // Errors: over_budget if the queue is full, unavailable after `stop`.
  Status post(Deadline deadline, Task task);
  // Queues the rest of an admitted task, even if the queue is full. Drops it after `stop`.
  void post_admitted(Deadline deadline, Task task);

  // Interrupts the connection of every worker that is still busy with a task whose deadline passed before `now`,
  // because a frozen server would block it without end. Returns true if there was one.
  bool interrupt_late(Monotonic now);

  void stop();  // finishes the queued tasks, then ends the threads

 private:
  struct Worker {
    std::unique_ptr<store::Reader> reader;
    bool busy = false;
    bool interrupted = false;
    Deadline deadline{};
    Task task;  // task that it was given while it was idle
    std::condition_variable wake;
    std::thread thread;
  };
  void give(Deadline deadline, Task task, std::unique_lock<std::mutex> lock);
  void serve(Worker& worker);
  void work(Worker& worker, Deadline deadline, Task task, std::unique_lock<std::mutex>& lock);

  const std::size_t tasks_max_;
  mutable std::mutex mutex_;
  std::deque<std::pair<Deadline, Task>> tasks_;  // not empty only while no worker is idle
  std::vector<Worker*> idle_;                    // the last element was busy most recently
  std::vector<std::unique_ptr<Worker>> workers_;
  bool stopping_ = false;
};

}  // namespace muniment::gateway
