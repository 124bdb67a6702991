// The socket from the caller's side: blocking JSON-RPC 2.0, one JSON object a line, raw bytes
// after a line that announces them (docs/protocol.md). One request is in flight at a time; what
// the daemon sends by itself (subscriptions) is kept until it is asked for.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "base/result.hpp"

namespace muniment::cli {

// A line that was received, and the raw bytes that followed it. Values point into it: keep it
// where it is while they are used.
class Message {
 public:
  static Result<Message> parse(std::string line);
  json::Value result() const { return document_.root()["result"]; }
  json::Value params() const { return document_.root()["params"]; }
  json::Value root() const { return document_.root(); }
  std::string raw;

 private:
  std::unique_ptr<const std::string> line_;  // the document refers to its bytes
  json::Document document_;
};

// Gives the next piece of a request's raw bytes; empty ends it.
using BodySource = std::function<Result<std::string_view>()>;

class Client {
 public:
  // `patience` bounds how long connecting, and each piece that is sent, may wait for a daemon that does not read; 0:
  // for ever. Errors: unavailable when nothing listens at `socket_path`.
  static Result<Client> connect(const std::string& socket_path, std::chrono::milliseconds patience = {});
  Client(Client&& other) noexcept;
  Client& operator=(Client&& other) noexcept;
  ~Client();

  // `params` is a JSON object's text. Errors: the daemon's own, with its code and message;
  // unavailable when the connection ends, deadline_exceeded when no answer comes.
  Result<Message> call(std::string_view method, std::string_view params);

  // The same with raw bytes after the line; `params` must hold their number as body_bytes. An early
  // refusal stops the sending.
  Result<Message> call(std::string_view method, std::string_view params, const BodySource& body);
  Result<Message> call(std::string_view method, std::string_view params, std::string_view body);

  // The next notification. Errors: deadline_exceeded when none comes in time; unavailable.
  Result<Message> next_notification(std::chrono::milliseconds at_most);

  // How long an answer is awaited once everything is sent.
  void set_patience(std::chrono::milliseconds patience) { patience_ = patience; }

  // The process that listens, as the kernel says; 0 where it cannot be known. Before a daemon has answered it may be
  // the one that made the socket, for the daemon to come: systemd.
  std::int32_t daemon_pid() const;
  int descriptor() const { return socket_; }

 private:
  explicit Client(int socket) : socket_(socket) {}
  Status send_all(std::string_view bytes);
  Status send_body(const BodySource& body);
  Result<std::string> read_line(std::chrono::steady_clock::time_point until);
  Result<std::string> read_bytes(std::size_t count, std::chrono::steady_clock::time_point until);
  Status fill(std::chrono::steady_clock::time_point until);
  Result<Message> read_message(std::chrono::steady_clock::time_point until);
  Result<Message> await_reply(std::int64_t id);

  int socket_ = -1;
  // The daemon answers within its own deadline; a little more, and it is not there.
  std::chrono::milliseconds patience_{limits::deadline_ms_default + 10'000};
  std::int64_t next_id_ = 1;
  std::string buffer_;     // received, not yet taken
  std::size_t taken_ = 0;  // of buffer_
  std::deque<Message> notifications_;
};

}  // namespace muniment::cli
