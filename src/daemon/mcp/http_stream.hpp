// The answer to one HTTP request of MCP: a single JSON object if the first message is the answer, otherwise a stream of
// events that ends with the answer. Loop thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "http/exchange.hpp"
#include "mcp/session.hpp"

namespace muniment::daemon {

class HttpStream {
 public:
  // `headers` are sent with the answer. `stateless` answers use the HTTP statuses of 2026-07-28.
  HttpStream(std::shared_ptr<http::Exchange> exchange, std::vector<http::Header> headers, bool stateless);
  ~HttpStream();
  HttpStream(const HttpStream&) = delete;

  void send(const mcp::Outgoing& message);
  void leave_out_headers() { headers_.clear(); }
  void begin();  // starts the stream of a GET at once
  void keep_alive();
  void end();
  std::size_t unread_bytes() const { return exchange_->unread_bytes(); }
  bool closed() const { return closed_; }
  std::function<void()> on_closed;  // called if the client disconnects before the answer

 private:
  const std::shared_ptr<http::Exchange> exchange_;
  std::vector<http::Header> headers_;
  const bool stateless_;
  bool streaming_ = false;
  bool closed_ = false;
};

// Returns a JSON-RPC error with an HTTP status.
http::Answer http_failure(int status, const mcp::Failure& failure, std::string_view id = {});
// Compares the headers that repeat the body (2026-07-28). Returns nullopt if they agree.
std::optional<mcp::Failure> check_headers(const http::Request& request, const mcp::Message& message);

}  // namespace muniment::daemon
