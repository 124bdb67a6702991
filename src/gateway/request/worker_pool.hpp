// The workers: a bounded pool of threads, each owning one read connection. What blocks runs here
// and never on the loop thread. Of the idle ones the last that worked goes first: its connection's plans and
// caches in Postgres are warm, and the others' are not needed.
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
  ~WorkerPool();  // as by `stop`

  // Errors: over_budget when the queue is full, unavailable after `stop`.
  Status post(Deadline deadline, Task task);
  // The rest of what was posted once: however full the queue is. After `stop` it is dropped.
  void post_admitted(Deadline deadline, Task task);

  // Cuts the connection of every worker that is still busy with a task whose deadline passed before
  // `now`: a frozen server holds it otherwise for as long as it likes. True: there was one.
  bool interrupt_late(Monotonic now);

  std::size_t queued() const;
  void stop();  // finishes what is queued, then ends the threads

 private:
  struct Worker {
    std::unique_ptr<store::Reader> reader;
    bool busy = false;
    bool interrupted = false;
    Deadline deadline{};
    Task task;  // handed to it while it was idle
    std::condition_variable wake;
    std::thread thread;
  };
  void give(Deadline deadline, Task task, std::unique_lock<std::mutex> lock);
  void serve(Worker& worker);
  void work(Worker& worker, Deadline deadline, Task task, std::unique_lock<std::mutex>& lock);

  const std::size_t tasks_max_;
  mutable std::mutex mutex_;
  std::deque<std::pair<Deadline, Task>> tasks_;  // waiting: nobody is idle
  std::vector<Worker*> idle_;                    // the last one worked last
  std::vector<std::unique_ptr<Worker>> workers_;
  bool stopping_ = false;
};

}  // namespace muniment::gateway
