// The native methods (docs/protocol.md) as an interface for MCP, so that the core has no socket and no thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"

namespace muniment::mcp {

// The reply to a native request. One of the two values is present; both are valid only during the call of `Done`.
struct NativeReply {
  json::Value result;
  json::Value error;  // {code, message, data {code, …}}

  bool ok() const { return error.present() == false; }
};

class Native {
 public:
  using Done = std::function<void(const NativeReply&)>;
  virtual ~Native() = default;

  // Sends a request under the caller's identity; `params` is a JSON object. `done` is called once, possibly before this
  // returns, unless the request is cancelled. Returns the request's number for `cancel`.
  virtual std::int64_t request(std::string_view method, std::string params, Done done) = 0;
  // Cancels the request; `done` is not called. Writes that the method has already begun may still be recorded.
  virtual void cancel(std::int64_t number) = 0;
  // Adds folders whose files the client's documents may name by their path, if the client has the right to read them.
  virtual void add_folders(const std::vector<std::string>& folders) = 0;
  // Sets the folder in which the host works: the default of tasks.
  virtual void set_working_folder(std::string folder) = 0;
};

}  // namespace muniment::mcp
