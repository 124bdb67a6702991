// A libuv loop that a test runs until a condition is true, and clients that exchange bytes over real sockets, in one
// thread.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files/file.hpp"
#include "http/server.hpp"

namespace muniment::test {

class HttpLoop {
 public:
  HttpLoop() {
    uv_loop_init(&loop_);
    uv_timer_init(&loop_, &tick_);
    uv_timer_start(
        &tick_, [](uv_timer_t*) {}, 1, 1);
  }
  ~HttpLoop() {
    const auto give_up = [](uv_timer_t*) {
      std::fputs("an HTTP server did not close its handles within the limit\n", stderr);
      std::abort();
    };
    uv_timer_start(&tick_, give_up, wait_ms_max, 0);
    uv_unref(reinterpret_cast<uv_handle_t*>(&tick_));
    uv_run(&loop_, UV_RUN_DEFAULT);  // returns when the server has closed all its handles
    uv_close(reinterpret_cast<uv_handle_t*>(&tick_), nullptr);
    uv_run(&loop_, UV_RUN_DEFAULT);
    if (uv_loop_close(&loop_) != 0) std::abort();
  }
  HttpLoop(const HttpLoop&) = delete;

  uv_loop_t* get() { return &loop_; }
  // Fails the test if the condition is false for `wait_ms_max`.
  void until(const std::function<bool()>& holds) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::milliseconds(wait_ms_max);
    while (!holds()) {
      if (std::chrono::steady_clock::now() > give_up) throw std::runtime_error("the awaited condition remained false");
      uv_run(&loop_, UV_RUN_ONCE);
    }
  }
  // Runs the loop until it has no immediate work, so that a test can assert that something did not happen.
  void settle() {
    for (int turn = 0; turn < 32; ++turn) uv_run(&loop_, UV_RUN_NOWAIT);
  }

 private:
  static constexpr std::uint64_t wait_ms_max = 60'000;

  uv_loop_t loop_{};
  uv_timer_t tick_{};
};

// A client that sends and receives without blocking, so that the loop can run.
class HttpClient {
 public:
  // `buffer_bytes`: size of the receive buffer (0: default); a small one is soon full if the client reads nothing.
  HttpClient(HttpLoop& loop, std::uint16_t port, int buffer_bytes = 0) : loop_(loop) {
    socket_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (buffer_bytes > 0) ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof buffer_bytes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int connected = ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    if (connected != 0 && errno != EINPROGRESS) throw std::runtime_error("a test client cannot connect");
  }

  // Sends all bytes, or as many as the server accepts before it closes the connection.
  void send(std::string_view bytes) {
    loop_.until([&] {
      const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
      return bytes.empty() || (sent < 0 && errno != EAGAIN);
    });
  }
  // One attempt to send. False: the server currently accepts no more, or has closed the connection.
  bool send_now(std::string_view bytes) {
    return ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }

  void receive() {
    char buffer[65'536];
    for (;;) {
      const ssize_t got = ::recv(socket_.get(), buffer, sizeof buffer, 0);
      if (got > 0) {
        received_.append(buffer, static_cast<std::size_t>(got));
      } else {
        closed_ = closed_ || got == 0 || errno != EAGAIN;
        return;
      }
    }
  }
  bool closed() {
    receive();
    return closed_;
  }
  // Waits for `text`, and returns the bytes up to its end; all received bytes if the server closes first.
  std::string read_to(std::string_view text) {
    std::size_t at = std::string::npos, searched = 0;
    loop_.until([&] {
      receive();
      at = received_.find(text, searched);
      searched = received_.size() - std::min(received_.size(), text.size() - 1);
      return at != std::string::npos || closed_;
    });
    const std::size_t end = at == std::string::npos ? received_.size() : at + text.size();
    const std::string read = received_.substr(0, end);
    received_.erase(0, end);
    return read;
  }
  std::string read_to_end() {
    loop_.until([&] { return closed(); });
    return std::exchange(received_, {});
  }
  // Reads a reply with a Content-Length. Returns its head and its body.
  std::pair<std::string, std::string> read_reply() {
    const std::string head = read_to("\r\n\r\n");
    const std::size_t at = head.find("Content-Length: ");
    const std::size_t length = at == std::string::npos ? 0 : std::stoul(head.substr(at + 16));
    loop_.until([&] {
      receive();
      return received_.size() >= length || closed_;
    });
    const std::string body = received_.substr(0, length);
    received_.erase(0, body.size());
    return {head, body};
  }

  void close() { socket_.reset(); }
  void half_close() { ::shutdown(socket_.get(), SHUT_WR); }

 private:
  HttpLoop& loop_;
  Fd socket_;
  std::string received_;
  bool closed_ = false;
};

inline std::string http_get(std::string_view target) {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
}

inline std::string http_post(std::string_view target, std::string_view body) {
  return "POST " + std::string(target) +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         std::string(body);
}

}  // namespace muniment::test
