// A small HTTP/1.1 server for a libuv loop (libmicrohttpd without threads): the handler runs, and all data is sent, on
// the loop's thread.
//
// No client holds more than the limits in Options, and no slow client holds them for long. The server closes a
// connection that is silent for `idle` before its request begins; whose first head takes over `stranger_idle`; whose
// head takes over twice `idle`; whose body or reply is slower than limits::http_bytes_per_second_min on average, beyond
// `idle`; whose event stream accepts nothing for `idle`. It never closes a connection because the handler takes long.
//
// The server itself answers, as text/plain: 400 to a request that two servers may frame differently (several lengths,
// an encoding other than chunked, a header name that is not a token); 413, 414 and 431; 503 while the bodies of all
// requests exceed limits::http_bodies_bytes_max; 500 for an exchange that the handler released without an answer. It
// closes connections beyond connections_max at once, and those with the most unread bytes while the sum exceeds
// answers_bytes_max. A connection is a stranger until `refuse` has accepted one of its requests. Beyond strangers_max,
// or if a new connection would exceed connections_max, the oldest stranger is closed, so that strangers keep no client
// out.
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
  std::string address = "127.0.0.1";                            // numeric IPv4 or IPv6 address
  std::uint16_t port = 0;                                       // 0: any free port
  std::string certificate_file, key_file;                       // PEM; both: TLS 1.2 and 1.3, neither: plain
  std::function<std::optional<Answer>(const Request&)> refuse;  // called with the head, before the body is read
  // Returns whether a request is answered without knowing its sender: its connection stays a stranger. Empty: none is.
  std::function<bool(const Request&)> is_open_to_all;
  std::size_t connections_max = limits::http_connections_max;
  std::size_t strangers_max = limits::http_strangers_max;    // at most half of connections_max
  std::size_t head_bytes_max = limits::http_head_bytes_max;  // for the request line and the headers
  std::size_t body_bytes_max = limits::http_body_bytes_max;
  std::size_t unread_bytes_max = limits::http_unread_bytes_per_stream_max;
  std::size_t answers_bytes_max = limits::http_answers_bytes_max;  // unread bytes of all clients
  std::chrono::seconds idle{limits::http_idle_seconds};
  std::chrono::seconds stranger_idle{limits::http_stranger_seconds};
};

class Server {
 public:
  using Handler = std::function<void(std::shared_ptr<Exchange>)>;

  // Errors: invalid_argument for the address, the certificate and the key, denied for a file or a port that the process
  // may not use, unavailable for a port in use. The loop outlives the server and runs once more after it.
  static Result<std::unique_ptr<Server>> listen(uv_loop_t* loop, Options options, Handler handler);
  ~Server();  // closes
  Server(const Server&) = delete;

  std::uint16_t port() const;
  std::size_t connections() const;
  void stop_accepting();   // connected clients are still served
  bool answering() const;  // true if a reply, or the end of a stream, is not written yet
  // Closes all connections and calls on_closed of unanswered exchanges: at once or, within a call of the handler or of
  // on_closed, right after it.
  void close();

 private:
  explicit Server(std::shared_ptr<Engine> engine);
  std::shared_ptr<Engine> engine_;
};

}  // namespace muniment::http
