// One request from its line to its reply. It owns the line (everything parsed points into it), the
// deadline, and the raw bytes that follow, if any.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "gateway/call.hpp"

namespace muniment::gateway {

// The raw bytes of a request on their way from the loop thread to the method's sink. At most one
// worker task serves it at a time, and none while there is nothing to write.
struct Body {
  std::int64_t expected = 0;             // bytes that follow the line
  std::mutex mutex;                      // guards what follows
  std::deque<std::string> chunks;        // arrived, not yet written
  std::size_t buffered = 0;
  std::int64_t received = 0;
  bool served = false;                   // a worker task is on it, or queued
  bool given_up = false;                 // the client is gone, or the request was refused
  std::unique_ptr<BodySink> sink;        // the worker's

  // Takes no more and forgets what came. Called by whoever serves it, or when nobody does.
  void drop() {
    sink.reset();
    const std::lock_guard lock(mutex);
    given_up = true;
    chunks.clear();
    buffered = 0;
  }
};

struct Exchange {
  std::string line;
  json::Document document;
  std::string id = "null";               // the id's JSON text
  const MethodInfo* method = nullptr;
  json::Value params;
  std::string_view idempotency_key;
  std::string key_storage;
  Monotonic began{};                     // when its line was read
  Deadline deadline{};
  Caller caller;
  std::unique_ptr<Body> body;
  std::vector<Uuid> event_ids;           // of the append that was queued, for an unknown outcome
  bool append_queued = false;
  bool checked_ids = false;              // the second time round after maybe_duplicate
  bool answered = false;                 // the loop's: whoever comes later is dropped
  std::list<std::shared_ptr<Exchange>>::iterator listed_at;  // in the dispatcher's list, until answered
  bool listed = false;
  // The loop's: takes the reply line (with its newline) and the raw bytes after it.
  std::function<void(std::string)> reply;
};

using ExchangePtr = std::shared_ptr<Exchange>;

}  // namespace muniment::gateway
