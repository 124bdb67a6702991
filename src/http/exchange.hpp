// One request and its answer: a complete reply, or a stream of server-sent events.
//
// The handler keeps the exchange as long as it needs and uses it on the loop thread only. If an exchange is released
// without an answer, its client gets 500; a released stream is ended. After the client has disconnected, every call is
// ignored.
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

  // Sends the complete answer. Only the first answer counts. A header that cannot be written (a line feed in its value)
  // turns it into a 500.
  void reply(int status, std::vector<Header> headers, std::string body);
  void reply(Answer answer) { reply(answer.status, std::move(answer.headers), std::move(answer.body)); }

  // Starts a stream of events. Adds the headers Content-Type: text/event-stream, Cache-Control: no-store and
  // X-Accel-Buffering: no.
  void begin_events(int status, std::vector<Header> headers);
  // Sends an event with a "data:" line for each line of `data`, of any length. Returns false if the client has
  // disconnected or has more than Options::unread_bytes_max to read; in that case the server closes the connection and
  // calls on_closed later.
  bool send_event(std::string_view data);
  void send_comment();  // sends ":" on a stream that is silent otherwise
  void end_events();

  // Bytes of events that the socket has not accepted. At most Options::unread_bytes_max and one event.
  std::size_t unread_bytes() const;

  // Called if the client disconnected, was too slow or broke the protocol, or the server was closed, before the answer
  // was complete. Called once, from the loop or Server::close, never within a call of the exchange. A client that shuts
  // down its own direction before a reply has begun, or during a stream, counts as disconnected.
  std::function<void()> on_closed;

 private:
  friend class Connection;
  Exchange(Connection& connection, Request request);

  Connection* connection_;  // null: the exchange is over
  Request request_;
};

}  // namespace muniment::http
