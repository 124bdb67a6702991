// Runs tasks on a bounded pool of threads.
#include "gateway/request/worker_pool.hpp"

#include <utility>

#include "base/metrics.hpp"
#include "base/process/thread.hpp"

namespace muniment::gateway {

WorkerPool::WorkerPool(std::size_t workers, const store::LogPlace& place, std::size_t tasks_max)
    : tasks_max_(tasks_max) {
  metrics::process().workers.set(static_cast<std::int64_t>(workers));
  for (std::size_t i = 0; i < workers; ++i) {
    Worker& worker = *workers_.emplace_back(std::make_unique<Worker>());
    worker.reader = std::make_unique<store::Reader>(place);
    worker.thread = named_thread("worker " + std::to_string(i), [this, &worker] { serve(worker); });
  }
}

WorkerPool::~WorkerPool() { stop(); }

Status WorkerPool::post(Deadline deadline, Task task) {
  std::unique_lock lock(mutex_);
  if (stopping_) return Error(Errc::unavailable, "the daemon is stopping");
  if (tasks_.size() >= tasks_max_) {
    Error error(Errc::over_budget, std::to_string(tasks_.size()) + " requests already wait for a worker, limit " +
                                       std::to_string(tasks_max_) + ". Retry in 100 ms.");
    error.limit = static_cast<std::int64_t>(tasks_max_);
    error.retry_after_ms = 100;
    return error;
  }
  give(deadline, std::move(task), std::move(lock));
  return success();
}

void WorkerPool::post_admitted(Deadline deadline, Task task) {
  std::unique_lock lock(mutex_);
  if (!stopping_) give(deadline, std::move(task), std::move(lock));
}

// Gives the task to an idle worker, or queues it.
void WorkerPool::give(Deadline deadline, Task task, std::unique_lock<std::mutex> lock) {
  if (idle_.empty()) {
    tasks_.emplace_back(deadline, std::move(task));
    metrics::process().workers_wanted.set(static_cast<std::int64_t>(tasks_.size()));
    return;
  }
  Worker* const worker = idle_.back();
  idle_.pop_back();
  worker->deadline = deadline;
  worker->task = std::move(task);
  lock.unlock();
  worker->wake.notify_one();
}

void WorkerPool::serve(Worker& worker) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (tasks_.empty()) {
      if (stopping_) return;
      idle_.push_back(&worker);
      worker.wake.wait(lock, [&] { return stopping_ || worker.task; });
      if (worker.task) work(worker, worker.deadline, std::exchange(worker.task, nullptr), lock);
      continue;
    }
    auto [deadline, task] = std::move(tasks_.front());
    tasks_.pop_front();
    metrics::process().workers_wanted.set(static_cast<std::int64_t>(tasks_.size()));
    work(worker, deadline, std::move(task), lock);
  }
}

void WorkerPool::work(Worker& worker, Deadline deadline, Task task, std::unique_lock<std::mutex>& lock) {
  worker.busy = true;
  metrics::process().workers_busy.add(1);
  worker.interrupted = false;
  worker.deadline = deadline;
  lock.unlock();
  task(*worker.reader);
  task = nullptr;  // the task's captures are destroyed before the lock is taken again
  lock.lock();
  worker.busy = false;
  metrics::process().workers_busy.add(-1);
}

bool WorkerPool::interrupt_late(Monotonic now) {
  std::lock_guard lock(mutex_);
  bool late = false;
  for (const auto& worker : workers_) {
    if (!worker->busy || worker->interrupted || worker->deadline > now) continue;
    worker->interrupted = late = true;
    worker->reader->connection().interrupt();
  }
  return late;
}

void WorkerPool::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const auto& worker : workers_) worker->wake.notify_one();
  }
  for (const auto& worker : workers_) {
    if (worker->thread.joinable()) worker->thread.join();
  }
}

}  // namespace muniment::gateway
