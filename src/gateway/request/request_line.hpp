// Reads a request line (JSON-RPC 2.0, docs/protocol.md) and validates it against the method's schema. The bytes are
// untrusted.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/json/schema.hpp"
#include "base/result.hpp"
#include "gateway/request/exchange.hpp"

namespace muniment::gateway {

// The parts of a line that are known even if the line is refused.
struct RequestHead {
  std::string id = "null";      // JSON text of the id
  std::int64_t body_bytes = 0;  // raw bytes that follow
  bool close = false;           // the stream is out of step and has to be closed
};

// Reads `exchange.line` into the exchange and returns the time for which its sender waits. Errors: invalid_argument,
// and those of Schema::validate.
Result<std::chrono::milliseconds> read_request_line(Exchange& exchange, const SchemaSet& schemas, RequestHead& head);

}  // namespace muniment::gateway
