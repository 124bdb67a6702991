// One request and the answer to it: a whole reply, or a stream of server-sent events.
//
// The handler keeps the exchange for as long as it needs, and uses it on the loop thread only. The client of an
// exchange that is released without an answer gets 500; a stream that is released is ended. After the client has gone,
// every call is ignored.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/request.hpp"

namespace muniment::http {

class Connection;

class Exchange {
 public:
  ~Exchange();
  Exchange(const Exchange&) = delete;

  const Request& request() const { return request_; }

  // The whole answer. Only the first answer counts. A header that cannot be written (a line feed in its value) makes it
  // a 500.
  void reply(int status, std::vector<Header> headers, std::string body);
  void reply(Answer answer) { reply(answer.status, std::move(answer.headers), std::move(answer.body)); }

  // Starts a stream of events. Content-Type: text/event-stream, Cache-Control: no-store and X-Accel-Buffering: no are
  // added to the headers.
  void begin_events(int status, std::vector<Header> headers);
  // An event with a "data:" line for each line of `data`, of any length. False: the client has gone, or has more than
  // Options::unread_bytes_max to read already. The server then closes the connection and calls on_closed later.
  bool send_event(std::string_view data);
  void send_comment();  // ":", for a stream that would otherwise be silent for long
  void end_events();

  // Bytes of events that the socket has not taken. At most Options::unread_bytes_max and one event.
  std::size_t unread_bytes() const;

  // The client left, was too slow or broke the protocol, or the server was closed, before the answer was complete.
  // Called once, from the loop or Server::close, never within a call of the exchange. A client that ends its own
  // direction (shutdown) before a reply has begun, or during a stream, has left.
  std::function<void()> on_closed;

 private:
  friend class Connection;
  Exchange(Connection& connection, Request request);

  Connection* connection_;  // null: the exchange is over
  Request request_;
};

}  // namespace muniment::http
