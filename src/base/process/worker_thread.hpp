// Implements a thread that works until its owner stops it, with the mutex that both use. The owner must declare it
// after everything that the thread uses, because its destructor stops the thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "base/process/thread.hpp"

namespace muniment {

class WorkerThread {
 public:
  using Lock = std::unique_lock<std::mutex>;

  WorkerThread() = default;
  ~WorkerThread() { stop(); }
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  template <typename Work>
  void start(std::string name, Work work) {
    thread_ = named_thread(std::move(name), std::move(work));
  }
  // Ends every wait and joins the thread.
  void stop() {
    {
      const Lock held = lock();
      stopping_ = true;
    }
    notify();
    if (thread_.joinable()) thread_.join();
  }

  bool started() const { return thread_.joinable(); }
  Lock lock() const { return Lock(mutex_); }
  bool stopping() const {
    const Lock held = lock();
    return stopping_;
  }
  void notify() { changed_.notify_all(); }

  // Each function waits, without the lock, until `ready` or `stop`. Returns false if the thread must end.
  template <typename Ready>
  bool wait(Lock& held, Ready ready) {
    changed_.wait(held, [&] { return stopping_ || ready(); });
    return !stopping_;
  }
  template <typename Ready>
  bool wait_until(Lock& held, std::chrono::steady_clock::time_point deadline, Ready ready) {
    changed_.wait_until(held, deadline, [&] { return stopping_ || ready(); });
    return !stopping_;
  }
  bool pause(Lock& held, std::chrono::steady_clock::duration time) {
    return wait_until(held, std::chrono::steady_clock::now() + time, [] { return false; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace muniment
