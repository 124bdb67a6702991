// A request's line (JSON-RPC 2.0, docs/protocol.md), read and held against the method's schema: whoever may connect
// chooses its bytes.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/json/schema.hpp"
#include "base/result.hpp"
#include "gateway/request/exchange.hpp"

namespace muniment::gateway {

// What is known of a line, also of one that is refused.
struct RequestHead {
  std::string id = "null";      // its JSON text
  std::int64_t body_bytes = 0;  // raw bytes that follow
  bool close = false;           // the stream cannot be trusted any further
};

// Reads `exchange.line` into the exchange; answers how long its sender waits. Errors: invalid_argument, and what
// Schema::validate says.
Result<std::chrono::milliseconds> read_request_line(Exchange& exchange, const SchemaSet& schemas, RequestHead& head);

}  // namespace muniment::gateway
