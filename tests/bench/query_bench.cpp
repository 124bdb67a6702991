// Sends request lines over the daemon's real socket, one after the other, and measures the latency for a client in a
// compiled language.
//
//   query_bench SOCKET < LINES
//
// Each line of the input is a JSON-RPC request; its answer is read to the end of its line, and examined only to
// distinguish a miss of the cache from a hit. Prints one JSON line: p50_ms, p95_ms, requests, misses. An answer with an
// error ends the program.

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

namespace {

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "query_bench: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(2);
}

int connect_to(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) die("connecting to " + path);
  return fd;
}

void exchange(int fd, const std::string& line, std::string& answer) {
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t size = ::send(fd, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (size < 0) die("send");
    sent += static_cast<std::size_t>(size);
  }
  std::size_t filled = 0;
  while (filled == 0 || answer[filled - 1] != '\n') {
    if (filled + 1 >= answer.size()) answer.resize(2 * answer.size());
    const ssize_t size = ::recv(fd, answer.data() + filled, answer.size() - filled - 1, 0);
    if (size <= 0) die("the daemon closed the connection");
    filled += static_cast<std::size_t>(size);
  }
  answer[filled] = '\0';
  if (answer.find("\"error\":{") < 64) die("refused: " + answer.substr(0, std::min<std::size_t>(filled, 400)));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: query_bench SOCKET < LINES\n");
    return 2;
  }
  std::vector<std::string> lines;
  for (std::string line; std::getline(std::cin, line);) lines.push_back(line + "\n");
  if (lines.empty()) die("no requests");
  const int fd = connect_to(argv[1]);
  std::vector<double> times;
  std::string answer(1 << 20, '\0');
  std::size_t misses = 0;
  for (const std::string& line : lines) {
    const auto begin = std::chrono::steady_clock::now();
    exchange(fd, line, answer);
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    if (answer.find("\"cache\":\"miss\"") < answer.find('\n')) ++misses;
  }
  std::sort(times.begin(), times.end());
  const auto quantile = [&](double part) {
    return times[std::min(times.size() - 1, static_cast<std::size_t>(part * static_cast<double>(times.size())))];
  };
  std::printf("{\"p50_ms\":%.3f,\"p95_ms\":%.3f,\"requests\":%zu,\"misses\":%zu}\n", quantile(.5), quantile(.95),
              times.size(), misses);
  return 0;
}
