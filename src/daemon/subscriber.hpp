// A follower of the log: a connection that speaks the native protocol, or an MCP session.
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
  // Bytes that its client has not read, and whether more may be made for it meanwhile.
  virtual std::size_t unread_bytes() const = 0;
  virtual bool may_send() const = 0;
  std::uint64_t number() const { return caller().connection; }
};

}  // namespace muniment::daemon
