// One request from its line to its reply. It owns the line (every parsed value points into it), the deadline, and the
// raw bytes that follow, if any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/json/json.hpp"
#include "gateway/call.hpp"
#include "gateway/request/send_order.hpp"

namespace muniment::gateway {

// The raw bytes of a request on their way from the loop thread to the method's sink. At most one worker task serves
// them at a time, and none while no bytes are queued.
struct Body {
  std::int64_t expected = 0;       // bytes that follow the line
  std::mutex mutex;                // guards the following members
  std::deque<std::string> chunks;  // bytes that arrived and are not written yet
  std::size_t buffered = 0;
  std::int64_t received = 0;
  bool served = false;             // a worker task serves it, or is queued
  bool given_up = false;           // the client disconnected, or the request was refused
  std::unique_ptr<BodySink> sink;  // used by the worker

  // Discards the queued bytes and accepts no more. Called by the task that serves the body, or while no task does.
  void drop() {
    sink.reset();
    const std::lock_guard lock(mutex);
    given_up = true;
    chunks.clear();
    buffered = 0;
  }
};

// A reservation of the memory that requests in flight may hold; the destructor releases it.
class HeldBytes {
 public:
  HeldBytes() = default;
  HeldBytes(std::shared_ptr<std::atomic<std::size_t>> total, std::size_t bytes)
      : total_(std::move(total)), bytes_(bytes) {
    *total_ += bytes_;
  }
  HeldBytes(HeldBytes&& other) noexcept : total_(std::move(other.total_)), bytes_(other.bytes_) {}
  HeldBytes& operator=(HeldBytes&& other) noexcept {
    std::swap(total_, other.total_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~HeldBytes() {
    if (total_) *total_ -= bytes_;
  }

 private:
  std::shared_ptr<std::atomic<std::size_t>> total_;
  std::size_t bytes_ = 0;
};

struct Exchange {
  std::string line;
  json::Document document;
  std::string id = "null";  // JSON text of the id
  const MethodInfo* method = nullptr;
  json::Value params;
  std::string_view idempotency_key;
  std::string key_storage;
  Monotonic began{};  // time at which its line was read
  Deadline deadline{};
  Caller caller;
  HeldBytes held;
  std::unique_ptr<Body> body;
  WriteState write_state;
  SendPlace place;                          // loop thread only
  std::unique_ptr<PendingAppend> prepared;  // loop thread only: the append that waits for its turn
  std::vector<Uuid> event_ids;              // ids submitted to the append thread, for an unknown outcome
  bool checked_ids = false;                 // true on the second run, after maybe_duplicate
  int repeats = 0;                          // number of times that the append thread returned it for a duplicate id
  bool answered = false;                    // loop thread only: later answers are dropped
  std::list<std::shared_ptr<Exchange>>::iterator listed_at;  // in the dispatcher's list, until answered
  bool listed = false;
  // Loop thread only: receives the reply line (with its newline) and the raw bytes after it.
  std::function<void(std::string)> reply;
};

}  // namespace muniment::gateway
