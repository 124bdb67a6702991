#include "adapters/import/crew.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/process/thread.hpp"

namespace muniment::cli {

ImportCrew::ImportCrew(std::string socket_path) : socket_path_(std::move(socket_path)) {}

ImportCrew::~ImportCrew() {
  stopped_ = true;
  orders_.close();
  for (std::thread& thread : threads_) thread.join();
}

// Processes orders one after another on one connection.
void ImportCrew::serve() {
  std::optional<Client> client;
  while (auto order = orders_.pop()) {
    if (stopped_) return;
    if (!client) {
      auto connected = Client::connect(socket_path_);
      if (!connected) {
        order->done.set_value([error = connected.error()]() -> Status { return error; });
        continue;
      }
      client.emplace(std::move(*connected));
    }
    order->done.set_value(order->work(*client));
  }
}

Status ImportCrew::add(std::size_t bytes, Work work) {
  while (!waiting_.empty() && (waiting_.size() >= import_waiting_max || bytes_ + bytes > import_waiting_bytes_max))
    RETURN_IF_ERROR(tell_first());
  Order order{std::move(work), {}};
  waiting_.push_back({order.done.get_future(), bytes});
  bytes_ += bytes;
  if (threads_.size() < import_crew_max && threads_.size() < waiting_.size()) {
    threads_.push_back(named_thread(fmt::format("import {}", threads_.size()), [this] { serve(); }));
  }
  if (!orders_.try_push(std::move(order))) return Error(Errc::system_error, "the queue of imports is full");
  return success();
}

Status ImportCrew::tell_first() {
  Waiting first = std::move(waiting_.front());
  waiting_.pop_front();
  const Report report = first.done.get();
  bytes_ -= first.bytes;
  return report();
}

Status ImportCrew::finish() {
  while (!waiting_.empty()) RETURN_IF_ERROR(tell_first());
  return success();
}

}  // namespace muniment::cli
