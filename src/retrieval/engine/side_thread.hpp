// A thread that does one piece of work while its owner does another. It is kept between them, because starting a thread
// would cost more than many searches.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "base/process/worker_thread.hpp"

namespace muniment::retrieval {

class SideThread {
 public:
  explicit SideThread(std::string name) : name_(std::move(name)) {}

  // The future has the result or the exception. The previous future must have been waited for.
  template <typename Work>
  std::future<std::invoke_result_t<Work>> run(Work work) {
    const auto task = std::make_shared<std::packaged_task<std::invoke_result_t<Work>()>>(std::move(work));
    if (!worker_.started()) worker_.start(name_, [this] { serve(); });
    {
      const auto lock = worker_.lock();
      next_ = [task] { (*task)(); };
    }
    worker_.notify();
    return task->get_future();
  }

 private:
  void serve() {
    auto lock = worker_.lock();
    for (;;) {
      worker_.wait(lock, [this] { return bool{next_}; });
      if (!next_) return;
      const std::function<void()> work = std::exchange(next_, nullptr);
      lock.unlock();
      work();
      lock.lock();
    }
  }

  const std::string name_;
  std::function<void()> next_;  // guarded by the worker's lock
  WorkerThread worker_;
};

}  // namespace muniment::retrieval
