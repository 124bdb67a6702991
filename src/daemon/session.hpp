// One connection: cuts the stream into request lines and the raw bytes that follow some of them,
// keeps the output in order, and stops reading from a client that is ahead of its requests or
// behind with its replies.
#pragma once

#include <uv.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/files/file.hpp"
#include "base/limits.hpp"
#include "daemon/mcp/mcp_peer.hpp"
#include "daemon/subscriber.hpp"
#include "gateway/request/dispatcher.hpp"

namespace muniment::daemon {

class Subscriptions;

// Bytes that all clients together have not read yet.
struct AllUnread {
  std::size_t bytes = 0;
  std::function<void()> on_full;  // over limits::unread_bytes_max: closes connections until it is not
};

class Session : public Subscriber, public std::enable_shared_from_this<Session> {
 public:
  Session(uv_loop_t* loop, gateway::Dispatcher& dispatcher, Subscriptions& subscriptions, McpHost& mcp,
          AllUnread& all_unread, std::uint64_t number);

  // Starts to read from the connection; one that is not admitted gets the error and is closed.
  void start(Fd connection, Result<gateway::Caller> caller);

  void send(std::string bytes) override;
  std::size_t unread_bytes() const override { return sent_unread_; }
  bool may_send() const override { return sent_unread_ <= limits::unread_bytes_per_connection_max; }
  std::int64_t silent_ms() const;  // since when its client, with as much to read as may wait for it, reads nothing
  void close_after_output();
  void close();
  void close_unread(std::string_view why);  // closes, and the log says why
  void resume_if_possible();                // after completions: there may be room again
  bool reading() const { return reading_; }
  const gateway::Caller& caller() const override { return caller_; }
  bool closed() const override { return closing_; }

  std::function<void(std::uint64_t)> on_closed;

 private:
  struct Write;
  static void on_alloc(uv_handle_t* handle, std::size_t suggested, uv_buf_t* buffer);
  static void on_read(uv_stream_t* stream, ssize_t size, const uv_buf_t* buffer);

  void received(std::string_view bytes);
  bool take_line(std::string_view& bytes);  // false: wait for more, or closed
  void serve_line(std::string line);
  bool serve_mcp(std::string& line);
  void take_body(std::string_view& bytes);
  void refuse_long_line();
  bool may_read() const;
  void pause_or_resume();
  void count_unread(std::ptrdiff_t more);
  void was_read(std::size_t bytes, int status);

  uv_pipe_t pipe_{};
  gateway::Dispatcher& dispatcher_;
  Subscriptions& subscriptions_;
  McpHost& mcp_host_;
  AllUnread& all_unread_;
  gateway::Caller caller_;
  std::shared_ptr<McpPeer> mcp_;  // its first message was one of MCP
  bool any_line_ = false;
  std::shared_ptr<Session> self_;  // held while libuv knows the handle
  std::string input_;              // the beginning of a line that is not whole yet
  std::string held_;               // arrived, not yet looked at: reading is paused
  gateway::ExchangePtr body_of_;   // whose raw bytes are arriving; nullptr with body_left_ > 0: drained
  std::int64_t body_left_ = 0;
  std::unordered_map<const gateway::Exchange*, gateway::ExchangePtr> in_flight_;
  std::size_t line_bytes_in_flight_ = 0;
  std::size_t sent_unread_ = 0;  // bytes that its client has not read …
  const std::shared_ptr<gateway::Unread> unread_ = std::make_shared<gateway::Unread>();  // … which workers look at, too
  std::uint64_t read_at_ms_ = 0;  // when its client last read a reply, or had none left
  bool reading_ = false;
  bool close_after_output_ = false;
  bool closing_ = false;
};

}  // namespace muniment::daemon
