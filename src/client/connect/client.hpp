// Client of the daemon's socket: blocking JSON-RPC 2.0 with one JSON object per line and raw bytes after a line that
// announces them (docs/protocol.md). One request is in flight at a time; notifications of subscriptions are queued
// until the caller reads them.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/files/file.hpp"
#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "base/result.hpp"

namespace muniment::cli {

// A received line and the raw bytes after it. Values point into it and are valid only while it exists.
class Message {
 public:
  static Result<Message> parse(std::string line);
  json::Value result() const { return document_.root()["result"]; }
  json::Value params() const { return document_.root()["params"]; }
  json::Value root() const { return document_.root(); }
  std::string raw;

 private:
  std::unique_ptr<const std::string> line_;  // bytes of the line, to which the document refers
  json::Document document_;
};

// Returns the next piece of a request's raw bytes; an empty piece ends them.
using BodySource = std::function<Result<std::string_view>()>;

class Client {
 public:
  // `patience` limits how long connecting and sending each piece may wait for a daemon that does not read; 0: no limit.
  // Errors: unavailable if no process listens at `socket_path`.
  static Result<Client> connect(const std::string& socket_path, std::chrono::milliseconds patience = {});
  // Takes over an open connection.
  static Client over(Fd connection) { return Client(connection.release()); }
  Client(Client&& other) noexcept;
  Client& operator=(Client&& other) noexcept;
  ~Client();

  // Sends a request and waits for the reply; `params` is the text of a JSON object. Errors: the daemon's error with its
  // code and message; unavailable if the connection ends; deadline_exceeded if no reply arrives.
  Result<Message> call(std::string_view method, std::string_view params);

  // Sends a request with raw bytes after the line; `params` must contain their number as body_bytes. An early refusal
  // stops the transfer.
  Result<Message> call(std::string_view method, std::string_view params, const BodySource& body);
  Result<Message> call(std::string_view method, std::string_view params, std::string_view body);

  // Sends a notification, which has no reply. Errors: unavailable.
  Status notify(std::string_view method, std::string_view params);

  // Returns the next notification. Errors: deadline_exceeded if none arrives in time; unavailable.
  Result<Message> next_notification(std::chrono::milliseconds at_most);

  // Time limit for a reply after the request is sent.
  void set_patience(std::chrono::milliseconds patience) { patience_ = patience; }

  // Returns the listening process as reported by the kernel; 0 if unknown. Before the daemon has answered, this may be
  // the process that created the socket for it, such as systemd.
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
  // The daemon answers within its own deadline; after a margin it counts as unreachable.
  std::chrono::milliseconds patience_{limits::deadline_ms_default + 10'000};
  std::int64_t next_id_ = 1;
  std::string buffer_;     // received bytes
  std::size_t taken_ = 0;  // number of consumed bytes in buffer_
  std::deque<Message> notifications_;
};

// Returns the folder where recorders keep what they cannot send to the daemon of a socket:
// ${XDG_STATE_HOME:-~/.local/state}/muniment/spool/<name from the socket path>. The agent's user may lack write access
// to the data folder. Errors: invalid_argument without a home folder.
Result<std::string> default_spool_folder(const std::string& socket_path);

}  // namespace muniment::cli
