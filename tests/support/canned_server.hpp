// An HTTP server that writes the bytes that a test specifies, valid or not; one connection at a time.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace muniment::test {

struct SeenRequest {
  std::string head;  // the request line and the headers
  std::string body;
};

inline std::string http_answer(const std::string& body, const std::string& status = "200 OK") {
  return "HTTP/1.1 " + status + "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\nConnection: close\r\n\r\n" + body;
}

class CannedServer {
 public:
  // `answer` writes the complete reply to the socket; the server adds nothing.
  using Answer = std::function<void(const SeenRequest&, int socket)>;

  explicit CannedServer(Answer answer) : answer_(std::move(answer)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 16) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      throw std::runtime_error("a test server cannot listen");
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~CannedServer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  CannedServer(const CannedServer&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::vector<SeenRequest> seen() const {
    const std::lock_guard lock(mutex_);
    return seen_;
  }

  static bool send_all(int socket, const std::string& bytes) {
    for (std::size_t at = 0; at < bytes.size();) {
      const ssize_t sent = ::send(socket, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) return false;
      at += static_cast<std::size_t>(sent);
    }
    return true;
  }

 private:
  void serve() {
    for (;;) {
      const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket < 0) return;
      const timeval wait_max{60, 0};  // for a client that sends an incomplete request, or does not read the reply
      ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &wait_max, sizeof wait_max);
      ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &wait_max, sizeof wait_max);
      const SeenRequest request = read(socket);
      {
        const std::lock_guard lock(mutex_);
        seen_.push_back(request);
      }
      answer_(request, socket);
      ::close(socket);
    }
  }

  static SeenRequest read(int socket) {
    std::string bytes;
    char buffer[65'536];
    std::size_t head = std::string::npos, length = 0;
    bool told = false;
    while (head == std::string::npos || bytes.size() < head + 4 + length) {
      const ssize_t got = ::recv(socket, buffer, sizeof buffer, 0);
      if (got <= 0) break;
      bytes.append(buffer, static_cast<std::size_t>(got));
      head = bytes.find("\r\n\r\n");
      if (head == std::string::npos) continue;
      const std::size_t at = bytes.find("Content-Length: ");
      if (at < head) length = std::strtoul(bytes.c_str() + at + 16, nullptr, 10);
      if (!told && bytes.find("100-continue") < head) told = send_all(socket, "HTTP/1.1 100 Continue\r\n\r\n");
    }
    if (head == std::string::npos) return {bytes, ""};
    return {bytes.substr(0, head), bytes.substr(head + 4)};
  }

  Answer answer_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  mutable std::mutex mutex_;
  std::vector<SeenRequest> seen_;
  std::thread thread_;
};

}  // namespace muniment::test
