// A thread beside the one that owns it, which does one piece of work while that one does another. It waits between
// them: making a thread for each would cost more than many a search.
#pragma once

#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "base/thread.hpp"

namespace muniment::retrieval {

class SideThread {
 public:
  explicit SideThread(std::string name) : name_(std::move(name)) {}

  ~SideThread() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

  // What it answers or throws is in the future. The one before must have been waited for.
  template <typename Work>
  std::future<std::invoke_result_t<Work>> run(Work work) {
    const auto task = std::make_shared<std::packaged_task<std::invoke_result_t<Work>()>>(std::move(work));
    if (!thread_.joinable()) thread_ = named_thread(name_, [this] { serve(); });
    {
      const std::lock_guard lock(mutex_);
      next_ = [task] { (*task)(); };
    }
    wake_.notify_one();
    return task->get_future();
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return stopping_ || next_; });
      if (!next_) return;
      const std::function<void()> work = std::exchange(next_, nullptr);
      lock.unlock();
      work();
      lock.lock();
    }
  }

  const std::string name_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::function<void()> next_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace muniment::retrieval
