// Small artifacts: 64 clients in closed loop put 4 KiB each over the daemon's socket; in turn, 64 threads perform the
// minimum that durability requires: an unnamed file, write, fsync, link, fsync of the folder.
//
//   put_bench --socket PATH --folder DIR --clients N --secs S --repeat R
//
// Prints one JSON line with the medians: puts_per_s, raw_per_s.

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t put_bytes = 4096;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "put_bench: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(2);
}

std::string random_bytes(std::mt19937_64& random, std::size_t size) {
  std::string out(size, '\0');
  for (std::size_t i = 0; i < size; i += 8) {
    const std::uint64_t bits = random();
    std::memcpy(out.data() + i, &bits, 8);
  }
  return out;
}

struct Client {
  int fd = -1;
  std::string run;
  std::string in;
};

void send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) die("send");
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::string answer(int fd) {
  std::string in;
  char buffer[8192];
  while (in.empty() || in.back() != '\n') {
    const ssize_t size = ::recv(fd, buffer, sizeof buffer, 0);
    if (size <= 0) die("recv");
    in.append(buffer, static_cast<std::size_t>(size));
  }
  if (in.find("\"error\"") != std::string::npos) die("refused: " + in.substr(0, 300));
  return in;
}

std::vector<Client> connect_clients(const std::string& path, int count, const std::string& prefix) {
  std::vector<Client> clients(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < clients.size(); ++i) {
    clients[i].fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    clients[i].run = prefix + std::to_string(i);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    if (::connect(clients[i].fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) die("connect");
    send_all(clients[i].fd, R"({"jsonrpc":"2.0","id":0,"method":"run.start","params":{"run_id":")" + clients[i].run +
                                R"(","agent":{"name":"bench"}}})"
                                "\n");
    answer(clients[i].fd);
  }
  return clients;
}

double puts_per_s(std::vector<Client>& clients, double secs) {
  std::mt19937_64 random{std::random_device{}()};
  const int poller = ::epoll_create1(0);
  const auto put = [&](Client& client) {
    send_all(client.fd, R"({"jsonrpc":"2.0","id":1,"method":"artifact.put","params":{"run_id":")" + client.run +
                            R"(","body_bytes":4096}})"
                            "\n" +
                            random_bytes(random, put_bytes));
  };
  for (std::size_t i = 0; i < clients.size(); ++i) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = i;
    ::epoll_ctl(poller, EPOLL_CTL_ADD, clients[i].fd, &event);
    put(clients[i]);
  }
  std::size_t in_flight = clients.size();
  long done = 0;
  const double start = now() + 0.5, stop = start + secs;
  while (in_flight > 0) {
    epoll_event ready[64];
    const int count = ::epoll_wait(poller, ready, 64, 1000);
    for (int i = 0; i < count; ++i) {
      Client& client = clients[ready[i].data.u64];
      answer(client.fd);
      const double at = now();
      if (at >= start && at < stop) ++done;
      if (at < stop) {
        put(client);
      } else {
        --in_flight;
      }
    }
  }
  ::close(poller);
  return static_cast<double>(done) / secs;
}

double raw_per_s(const std::string& folder, int threads, double secs) {
  std::atomic<long> done{0};
  const double start = now() + 0.5, stop = start + secs;
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    const std::string own = folder + "/" + std::to_string(t);
    ::mkdir(folder.c_str(), 0755);
    ::mkdir(own.c_str(), 0755);
    all.emplace_back([&, own] {
      std::mt19937_64 random{std::random_device{}()};
      const int directory = ::open(own.c_str(), O_RDONLY | O_DIRECTORY);
      for (;;) {
        const std::string bytes = random_bytes(random, put_bytes);
        const int fd = ::open(own.c_str(), O_TMPFILE | O_RDWR, 0644);
        if (fd < 0 || ::write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()) || ::fsync(fd) != 0)
          die("write");
        const std::string from = "/proc/self/fd/" + std::to_string(fd), to = own + "/" + std::to_string(random());
        if (::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), AT_SYMLINK_FOLLOW) != 0 || ::fsync(directory) != 0)
          die("link");
        ::close(fd);
        const double at = now();
        if (at >= stop) break;
        if (at >= start) ++done;
      }
      ::close(directory);
    });
  }
  for (std::thread& thread : all) thread.join();
  return static_cast<double>(done) / secs;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  std::string socket_path, folder;
  int clients = 64, repeat = 3;
  double secs = 4;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    if (flag == "--socket")
      socket_path = value;
    else if (flag == "--folder")
      folder = value;
    else if (flag == "--clients")
      clients = std::stoi(value);
    else if (flag == "--secs")
      secs = std::stod(value);
    else if (flag == "--repeat")
      repeat = std::stoi(value);
    else
      die("no such option: " + flag);
  }
  std::vector<Client> connected = connect_clients(socket_path, clients, "put-" + std::to_string(::getpid()) + "-");
  std::vector<double> puts, raws;
  for (int i = 0; i < repeat; ++i) {
    puts.push_back(puts_per_s(connected, secs));
    raws.push_back(raw_per_s(folder, clients, secs));
  }
  std::printf("{\"puts_per_s\": %.0f, \"raw_per_s\": %.0f}\n", median(puts), median(raws));
}
