// Reads request lines and raw bytes from a connection, and writes its replies.
#include "daemon/session.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "base/limits.hpp"
#include "base/log.hpp"
#include "daemon/subscriptions.hpp"
#include "gateway/read/reading.hpp"

namespace muniment::daemon {
namespace {

constexpr std::size_t read_bytes = 256 * 1024;

// All sessions read into one buffer, which is emptied before the next read.
char* shared_read_buffer() {
  static thread_local std::string buffer(read_bytes, '\0');
  return buffer.data();
}

Session* session_of(void* data) { return static_cast<Session*>(data); }

}  // namespace

struct Session::Write {
  uv_write_t request{};
  std::string bytes;
  std::shared_ptr<Session> session;
};

Session::Session(uv_loop_t* loop, gateway::Dispatcher& dispatcher, Subscriptions& subscriptions, McpHost& mcp,
                 AllUnread& all_unread, std::uint64_t number)
    : dispatcher_(dispatcher), subscriptions_(subscriptions), mcp_host_(mcp), all_unread_(all_unread) {
  uv_pipe_init(loop, &pipe_, 0);
  pipe_.data = this;
  caller_.connection = number;
}

void Session::start(Fd connection, Result<gateway::Caller> caller) {
  self_ = shared_from_this();
  if (uv_pipe_open(&pipe_, connection.get()) != 0) return close();
  connection.release();
  if (!caller) {
    send(gateway::error_line("null", caller.error()));
    return close_after_output();
  }
  const std::uint64_t number = caller_.connection;
  caller_ = *std::move(caller);
  caller_.connection = number;
  caller_.reading = std::make_shared<gateway::Reading>();
  caller_.unread = unread_;
  pause_or_resume();
}

void Session::on_alloc(uv_handle_t*, std::size_t, uv_buf_t* buffer) {
  *buffer = uv_buf_init(shared_read_buffer(), static_cast<unsigned>(read_bytes));
}

void Session::on_read(uv_stream_t* stream, ssize_t size, const uv_buf_t* buffer) {
  const auto self = session_of(stream->data)->shared_from_this();
  if (size < 0) return self->close();
  self->received(std::string_view(buffer->base, static_cast<std::size_t>(size)));
}

void Session::received(std::string_view bytes) {
  while (!bytes.empty() && !closing_ && !close_after_output_) {
    if (!may_read()) {
      held_.append(bytes);
      break;
    }
    if (body_left_ > 0) {
      take_body(bytes);
    } else if (!take_line(bytes)) {
      break;
    }
  }
  pause_or_resume();
}

bool Session::take_line(std::string_view& bytes) {
  const std::size_t end = bytes.find('\n');
  const std::size_t more = end == std::string_view::npos ? bytes.size() : end;
  if (input_.size() + more > limits::request_line_bytes_max) {
    refuse_long_line();
    return false;
  }
  input_.append(bytes.substr(0, more));
  bytes.remove_prefix(std::min(bytes.size(), more + 1));
  if (end == std::string_view::npos) return false;
  std::string line = std::exchange(input_, {});
  if (!line.empty() && line.back() == '\r') line.pop_back();
  if (line.find_first_not_of(" \t") != std::string::npos) serve_line(std::move(line));
  return true;
}

// Refuses a line that is too long without parsing it or waiting for its end.
void Session::refuse_long_line() {
  Error error(Errc::too_large,
              "the request line is over " + std::to_string(limits::request_line_bytes_max) +
                  " bytes. Send large content with artifact.put and body_bytes. The connection is closed.");
  error.limit = static_cast<std::int64_t>(limits::request_line_bytes_max);
  send(gateway::error_line("null", error));
  close_after_output();
}

// Returns true if the line is a message of MCP. If it is the first message, the connection speaks MCP from then on.
bool Session::serve_mcp(std::string& line) {
  if (!std::exchange(any_line_, true) && mcp::is_mcp_line(line)) {
    std::weak_ptr<Session> weak = weak_from_this();
    McpPeer::Link link;
    link.send = [weak](mcp::Outgoing message) {
      if (const auto session = weak.lock()) session->send(std::move(message.text) + "\n");
    };
    link.unread_bytes = [weak] {
      const auto session = weak.lock();
      return session ? session->unread_bytes() : 0;
    };
    mcp_ = mcp_host_.open(caller_, caller_.admin, std::move(link));
  }
  if (!mcp_) return false;
  mcp_->session().receive(std::move(line));
  return true;
}

void Session::serve_line(std::string line) {
  if (serve_mcp(line)) return;
  std::weak_ptr<Session> weak = weak_from_this();
  auto reply = [weak](std::string bytes) {
    if (auto session = weak.lock()) session->send(std::move(bytes));
  };
  gateway::Dispatcher::Admitted admitted = dispatcher_.admit(std::move(line), caller_, reply);
  if (admitted.close ||
      (!admitted.exchange && admitted.body_bytes > static_cast<std::int64_t>(limits::refused_body_drained_bytes_max))) {
    return close_after_output();
  }
  body_left_ = admitted.body_bytes;
  body_of_ = nullptr;
  if (!admitted.exchange) return;
  const gateway::ExchangePtr exchange = admitted.exchange;
  in_flight_.emplace(exchange.get(), exchange);
  line_bytes_in_flight_ += exchange->line.size();
  // A strong pointer would make the exchange own itself.
  exchange->reply = [weak, raw = exchange.get()](std::string bytes) {
    auto session = weak.lock();
    if (!session) return;
    session->send(std::move(bytes));
    if (session->in_flight_.contains(raw)) session->line_bytes_in_flight_ -= raw->line.size();
    session->in_flight_.erase(raw);
  };
  if (admitted.subscription) return subscriptions_.serve(shared_from_this(), exchange);
  dispatcher_.run(exchange);
  if (exchange->body && exchange->body->expected > 0) {
    body_of_ = exchange;
  } else if (exchange->body) {
    dispatcher_.body_arrived(exchange, "");
  }
}

void Session::take_body(std::string_view& bytes) {
  const auto size =
      static_cast<std::size_t>(std::min<std::int64_t>(body_left_, static_cast<std::int64_t>(bytes.size())));
  body_left_ -= static_cast<std::int64_t>(size);
  if (body_of_ && !body_of_->answered) {
    dispatcher_.body_arrived(body_of_, std::string(bytes.substr(0, size)));
  } else if (body_left_ > static_cast<std::int64_t>(limits::refused_body_drained_bytes_max)) {
    return close_after_output();  // refused, and too many bytes would follow
  }
  bytes.remove_prefix(size);
  if (body_left_ == 0) body_of_ = nullptr;
}

bool Session::may_read() const {
  if (in_flight_.size() >= limits::requests_in_flight_per_connection_max) return false;
  if (body_left_ == 0 && line_bytes_in_flight_ >= limits::request_bytes_in_flight_per_connection_max) return false;
  if (!may_send()) return false;
  return !body_of_ || body_of_->answered || !gateway::Dispatcher::body_full(*body_of_);
}

void Session::pause_or_resume() {
  const bool wanted = !closing_ && !close_after_output_ && held_.empty() && may_read();
  if (wanted == reading_) return;
  reading_ = wanted;
  auto* stream = reinterpret_cast<uv_stream_t*>(&pipe_);
  if (wanted) {
    uv_read_start(stream, on_alloc, on_read);
  } else if (!closing_) {
    uv_read_stop(stream);
  }
}

void Session::resume_if_possible() {
  if (reading_ || closing_) return;
  if (!held_.empty() && may_read()) {
    const std::string held = std::exchange(held_, {});
    return received(held);
  }
  pause_or_resume();
}

void Session::send(std::string bytes) {
  if (closing_ || bytes.empty()) return;
  auto* stream = reinterpret_cast<uv_stream_t*>(&pipe_);
  std::size_t sent = 0;
  if (unread_bytes() == 0) {
    read_at_ms_ = uv_now(pipe_.loop);
    uv_buf_t buffer = uv_buf_init(bytes.data(), static_cast<unsigned>(bytes.size()));
    const int written = uv_try_write(stream, &buffer, 1);
    if (written > 0) sent = static_cast<std::size_t>(written);
    if (written < 0 && written != UV_EAGAIN) return close();
    if (sent == bytes.size()) return;
  }
  auto* write = new Write{{}, std::move(bytes), shared_from_this()};
  if (sent > 0) write->bytes.erase(0, sent);
  write->request.data = write;
  uv_buf_t buffer = uv_buf_init(write->bytes.data(), static_cast<unsigned>(write->bytes.size()));
  uv_write(&write->request, stream, &buffer, 1, [](uv_write_t* request, int status) {
    const std::unique_ptr<Write> done(static_cast<Write*>(request->data));
    done->session->was_read(done->bytes.size(), status);
  });
  count_unread(static_cast<std::ptrdiff_t>(buffer.len));
  if (all_unread_.bytes > limits::unread_bytes_max) all_unread_.on_full();
}

void Session::count_unread(std::ptrdiff_t more) {
  const auto bytes = static_cast<std::size_t>(more);  // unsigned sums wrap as intended
  sent_unread_ += bytes;
  unread_->bytes += bytes;
  all_unread_.bytes += bytes;
}

// The client has received the bytes, or has disconnected.
void Session::was_read(std::size_t bytes, int status) {
  if (closing_) return;
  count_unread(-static_cast<std::ptrdiff_t>(bytes));
  read_at_ms_ = uv_now(pipe_.loop);
  if (status < 0 || (close_after_output_ && unread_bytes() == 0)) return close();
  dispatcher_.resume(*unread_);
  resume_if_possible();
  subscriptions_.drained(*this);
}

std::int64_t Session::silent_ms() const {
  return may_send() ? 0 : static_cast<std::int64_t>(uv_now(pipe_.loop) - read_at_ms_);
}

void Session::close_after_output() {
  if (closing_) return;
  close_after_output_ = true;
  pause_or_resume();
  if (unread_bytes() == 0) close();
}

void Session::close_unread(std::string_view why) {
  log_warning("a connection is closed", {{"actor", caller_.actor}, {"unread_bytes", unread_bytes()}, {"error", why}});
  close();
}

void Session::close() {
  if (std::exchange(closing_, true)) return;
  count_unread(-static_cast<std::ptrdiff_t>(sent_unread_));
  for (const auto& [raw, exchange] : std::exchange(in_flight_, {})) dispatcher_.give_up(exchange);
  dispatcher_.resume(*unread_);  // an MCP call with a handle continues
  body_of_ = nullptr;
  if (mcp_) std::exchange(mcp_, nullptr)->close();
  uv_close(reinterpret_cast<uv_handle_t*>(&pipe_), [](uv_handle_t* handle) {
    Session* session = session_of(handle->data);
    // The subscriptions are closed last, because a failing write closes the session during an iteration over them.
    session->subscriptions_.closed(*session);
    if (session->on_closed) session->on_closed(session->number());
    session->self_.reset();
  });
}

}  // namespace muniment::daemon
