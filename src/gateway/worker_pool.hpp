// The workers: a bounded pool of threads, each owning one read connection. What blocks runs here
// and never on the loop thread.
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
#include "store/reader.hpp"

namespace muniment::gateway {

class WorkerPool {
 public:
  using Task = std::function<void(store::Reader&)>;

  WorkerPool(std::size_t workers, const store::LogPlace& place, std::size_t tasks_max);
  ~WorkerPool();  // as by `stop`

  // Errors: over_budget when the queue is full, unavailable after `stop`.
  Status post(Deadline deadline, Task task);

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
    std::thread thread;
  };
  void serve(Worker& worker);

  const std::size_t tasks_max_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::pair<Deadline, Task>> tasks_;
  std::vector<std::unique_ptr<Worker>> workers_;
  bool stopping_ = false;
};

}  // namespace muniment::gateway
