// One connection: splits the stream into request lines and raw bytes, keeps the order of the output, and pauses reading
// while too many requests or unread replies are outstanding. Loop thread.
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

// Total number of bytes that the clients have not read yet.
struct AllUnread {
  std::size_t bytes = 0;
  std::function<void()> on_full;  // called above limits::unread_bytes_max; closes connections until the sum is below it
};

class Session : public Subscriber, public std::enable_shared_from_this<Session> {
 public:
  Session(uv_loop_t* loop, gateway::Dispatcher& dispatcher, Subscriptions& subscriptions, McpHost& mcp,
          AllUnread& all_unread, std::uint64_t number);

  // Starts reading from the connection. If `caller` is an error, sends it and closes the connection.
  void start(Fd connection, Result<gateway::Caller> caller);

  void send(std::string bytes) override;
  std::size_t unread_bytes() const override { return sent_unread_; }
  bool may_send() const override { return sent_unread_ <= limits::unread_bytes_per_connection_max; }
  std::int64_t silent_ms() const;  // time for which the client has read nothing at the limit of unread replies
  void close_after_output();
  void close();
  void close_unread(std::string_view why);  // closes the connection and logs the reason
  void resume_if_possible();                // called after completions, which may have made room
  bool reading() const { return reading_; }
  const gateway::Caller& caller() const override { return caller_; }
  bool closed() const override { return closing_; }

  std::function<void(std::uint64_t)> on_closed;

 private:
  struct Write;
  static void on_alloc(uv_handle_t* handle, std::size_t suggested, uv_buf_t* buffer);
  static void on_read(uv_stream_t* stream, ssize_t size, const uv_buf_t* buffer);

  void received(std::string_view bytes);
  bool take_line(std::string_view& bytes);  // returns false if the line is incomplete or the session closed
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
  std::shared_ptr<McpPeer> mcp_;  // set if the first message was an MCP message
  bool any_line_ = false;
  std::shared_ptr<Session> self_;  // held while libuv uses the handle
  std::string input_;              // the beginning of an incomplete line
  std::string held_;               // bytes that were received and not processed, because reading is paused
  gateway::ExchangePtr body_of_;   // receives raw bytes; nullptr with body_left_ > 0: they are discarded
  std::int64_t body_left_ = 0;
  std::unordered_map<const gateway::Exchange*, gateway::ExchangePtr> in_flight_;
  std::size_t line_bytes_in_flight_ = 0;
  std::size_t sent_unread_ = 0;  // bytes that the client has not read
  const std::shared_ptr<gateway::Unread> unread_ = std::make_shared<gateway::Unread>();  // also read by workers
  std::uint64_t read_at_ms_ = 0;  // time at which the client last read a reply, or had none left
  bool reading_ = false;
  bool close_after_output_ = false;
  bool closing_ = false;
};

}  // namespace muniment::daemon
