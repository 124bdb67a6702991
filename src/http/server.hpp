// A small HTTP/1.1 server for a libuv loop (libmicrohttpd without threads): every call of the handler, and everything
// that is sent, happens on the loop's thread.
//
// Clients cannot hold more than the limits in Options. One that is slow is closed: before its request has begun after
// `idle` without a byte; a head that takes over twice `idle`; a body or a reply that moves slower than
// limits::http_bytes_per_second_min on average, and `idle` on top; an event stream that takes nothing for `idle`. A
// request that takes its handler long is not.
//
// Refused by the server itself, as text/plain: 400 for a request that two servers may read in two ways (both or several
// lengths, an encoding other than chunked, a header's name that is none), 413, 414, 431, 503 beyond
// limits::http_bodies_bytes_max, 500 for an exchange that was released without an answer. Connections beyond
// connections_max are closed at once.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/limits.hpp"
#include "base/result.hpp"
#include "http/exchange.hpp"
#include "http/request.hpp"

typedef struct uv_loop_s uv_loop_t;

namespace muniment::http {

class Engine;

struct Options {
  std::string address = "127.0.0.1";                            // IPv4 or IPv6, as a number
  std::uint16_t port = 0;                                       // 0: any that is free
  std::string certificate_file, key_file;                       // PEM; both: TLS 1.2 and 1.3, neither: plain
  std::function<std::optional<Answer>(const Request&)> refuse;  // asked with the head, before the body is read
  std::size_t connections_max = limits::http_connections_max;
  std::size_t head_bytes_max = limits::http_head_bytes_max;  // of the request line and the headers
  std::size_t body_bytes_max = limits::http_body_bytes_max;
  std::size_t unread_bytes_max = limits::http_unread_bytes_per_stream_max;
  std::chrono::seconds idle{limits::http_idle_seconds};
};

class Server {
 public:
  using Handler = std::function<void(std::shared_ptr<Exchange>)>;

  // Errors: invalid_argument (address, certificate and key), not_found or denied for a file, denied or unavailable for
  // the port. The loop outlives the server, and runs once more after it.
  static Result<std::unique_ptr<Server>> listen(uv_loop_t* loop, Options options, Handler handler);
  ~Server();  // closes
  Server(const Server&) = delete;

  std::uint16_t port() const;
  std::size_t connections() const;
  void stop_accepting();  // the clients that are connected are served on
  // Closes all connections, and calls on_closed of what was not answered: at once, or, within a call of the handler or
  // of on_closed, right after it.
  void close();

 private:
  explicit Server(std::shared_ptr<Engine> engine);
  std::shared_ptr<Engine> engine_;
};

}  // namespace muniment::http
