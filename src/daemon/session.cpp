#include "daemon/session.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "base/limits.hpp"
#include "daemon/subscriptions.hpp"
#include "gateway/reading.hpp"

namespace muniment::daemon {
namespace {

constexpr std::size_t read_bytes = 256 * 1024;

// All sessions read into one buffer: it is emptied before the next read.
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

Session::Session(uv_loop_t* loop, gateway::Dispatcher& dispatcher, Subscriptions& subscriptions, std::uint64_t number)
    : dispatcher_(dispatcher), subscriptions_(subscriptions) {
  uv_pipe_init(loop, &pipe_, 0);
  pipe_.data = this;
  caller_.connection = number;
}

Status Session::start(uv_stream_t* listener, const std::function<Result<gateway::Caller>(const Peer&)>& admit) {
  self_ = shared_from_this();
  if (uv_accept(listener, reinterpret_cast<uv_stream_t*>(&pipe_)) != 0) {
    close();
    return Error(Errc::unavailable, "accepting a connection failed");
  }
  uv_os_fd_t descriptor = -1;
  uv_fileno(reinterpret_cast<uv_handle_t*>(&pipe_), &descriptor);
  const Result<Peer> peer = peer_of(descriptor);
  if (!peer) {
    close();
    return peer.error();
  }
  Result<gateway::Caller> caller = admit(*peer);
  if (!caller) {
    send(gateway::error_line("null", caller.error()));
    close_after_output();
    return std::move(caller).error();
  }
  const std::uint64_t number = caller_.connection;
  caller_ = *std::move(caller);
  caller_.connection = number;
  caller_.reading = std::make_shared<gateway::Reading>();
  pause_or_resume();
  return success();
}

// ---- reading ------------------------------------------------------------------------------------

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

// Refused from its head: nothing of it was parsed, and where it ends is not waited for.
void Session::refuse_long_line() {
  Error error(Errc::too_large, "the request line is over " + std::to_string(limits::request_line_bytes_max) +
                                   " bytes. Send large content with artifact.put and body_bytes. The connection is closed.");
  error.limit = static_cast<std::int64_t>(limits::request_line_bytes_max);
  send(gateway::error_line("null", error));
  close_after_output();
}

void Session::serve_line(std::string line) {
  std::weak_ptr<Session> weak = weak_from_this();
  auto reply = [weak](std::string bytes) {
    if (auto session = weak.lock()) session->send(std::move(bytes));
  };
  gateway::Dispatcher::Admitted admitted = dispatcher_.admit(std::move(line), caller_, reply);
  if (admitted.close || (!admitted.exchange && admitted.body_bytes > static_cast<std::int64_t>(limits::refused_body_drained_bytes_max))) {
    return close_after_output();
  }
  body_left_ = admitted.body_bytes;
  body_of_ = nullptr;
  if (!admitted.exchange) return;
  const gateway::ExchangePtr exchange = admitted.exchange;
  in_flight_.emplace(exchange.get(), exchange);
  line_bytes_in_flight_ += exchange->line.size();
  // A weak pointer, or the exchange would own itself.
  exchange->reply = [weak, raw = exchange.get()](std::string bytes) {
    auto session = weak.lock();
    if (!session) return;
    session->send(std::move(bytes));
    if (session->in_flight_.contains(raw)) session->line_bytes_in_flight_ -= raw->line.size();
    session->in_flight_.erase(raw);
  };
  if (admitted.subscription) return subscriptions_.serve(*this, exchange);
  dispatcher_.run(exchange);
  if (exchange->body && exchange->body->expected > 0) {
    body_of_ = exchange;
  } else if (exchange->body) {
    dispatcher_.body_arrived(exchange, "");
  }
}

void Session::take_body(std::string_view& bytes) {
  const auto size = static_cast<std::size_t>(std::min<std::int64_t>(body_left_, static_cast<std::int64_t>(bytes.size())));
  body_left_ -= static_cast<std::int64_t>(size);
  if (body_of_ && !body_of_->answered) {
    dispatcher_.body_arrived(body_of_, std::string(bytes.substr(0, size)));
  } else if (body_left_ > static_cast<std::int64_t>(limits::refused_body_drained_bytes_max)) {
    return close_after_output();  // refused, and too much of it still to come
  }
  bytes.remove_prefix(size);
  if (body_left_ == 0) body_of_ = nullptr;
}

bool Session::may_read() const {
  if (in_flight_.size() >= limits::requests_in_flight_per_connection_max) return false;
  if (body_left_ == 0 && line_bytes_in_flight_ >= limits::request_bytes_in_flight_per_connection_max) return false;
  if (unsent_ > limits::output_buffer_bytes_max) return false;
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

// ---- writing ------------------------------------------------------------------------------------

void Session::send(std::string bytes) {
  if (closing_ || bytes.empty()) return;
  auto* stream = reinterpret_cast<uv_stream_t*>(&pipe_);
  std::size_t sent = 0;
  if (unsent_ == 0) {
    uv_buf_t buffer = uv_buf_init(bytes.data(), static_cast<unsigned>(bytes.size()));
    const int written = uv_try_write(stream, &buffer, 1);
    if (written > 0) sent = static_cast<std::size_t>(written);
    if (written < 0 && written != UV_EAGAIN) return close();
    if (sent == bytes.size()) return;
  }
  auto* write = new Write{{}, std::move(bytes), shared_from_this()};
  if (sent > 0) write->bytes.erase(0, sent);
  unsent_ += write->bytes.size();
  write->request.data = write;
  uv_buf_t buffer = uv_buf_init(write->bytes.data(), static_cast<unsigned>(write->bytes.size()));
  uv_write(&write->request, stream, &buffer, 1, [](uv_write_t* request, int status) {
    const std::unique_ptr<Write> done(static_cast<Write*>(request->data));
    Session& session = *done->session;
    session.unsent_ -= done->bytes.size();
    if (status < 0 || (session.close_after_output_ && session.unsent_ == 0)) return session.close();
    session.resume_if_possible();
    session.subscriptions_.drained(session);
  });
}

void Session::close_after_output() {
  if (closing_) return;
  close_after_output_ = true;
  pause_or_resume();
  if (unsent_ == 0) close();
}

void Session::close() {
  if (std::exchange(closing_, true)) return;
  for (const auto& [raw, exchange] : std::exchange(in_flight_, {})) dispatcher_.give_up(exchange);
  body_of_ = nullptr;
  uv_close(reinterpret_cast<uv_handle_t*>(&pipe_), [](uv_handle_t* handle) {
    Session* session = session_of(handle->data);
    // Here and not above: a write that fails closes the session in the middle of a walk over its subscriptions.
    session->subscriptions_.closed(*session);
    if (session->on_closed) session->on_closed(session->number());
    session->self_.reset();
  });
}

}  // namespace muniment::daemon
