// A client that follows the log: a connection of the native protocol, or an MCP session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "gateway/call.hpp"

namespace muniment::daemon {

class Subscriber {
 public:
  virtual ~Subscriber() = default;
  virtual const gateway::Caller& caller() const = 0;
  virtual bool closed() const = 0;
  virtual void send(std::string line) = 0;
  // Bytes that the client has not read, and whether more may be queued for it.
  virtual std::size_t unread_bytes() const = 0;
  virtual bool may_send() const = 0;
  std::uint64_t number() const { return caller().connection; }
};

}  // namespace muniment::daemon
