// Closed-loop load for the append path over the daemon's real socket: N connections, each with one request in flight,
// one event or a batch a request. One thread with epoll, so that the generator uses little of the two cores that it
// shares with the daemon and Postgres.
//
//   append_bench --socket PATH --clients N --secs S [--batch B] [--prefix NAME]
//
// Every client has a run of its own and appends tool.called and tool.returned in turn, with an event_id that it
// generates and a body of 398 bytes. Prints one JSON line: events_per_s, p50_ms, p99_ms (of a request), events, secs.

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr std::size_t body_bytes = 398;
constexpr double warmup_secs = 1.0;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "append_bench: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(2);
}

std::mt19937_64 random_bits{std::random_device{}()};

std::string hex(std::size_t digits) {
  std::string out(digits, '0');
  for (char& c : out) c = "0123456789abcdef"[random_bits() & 15];
  return out;
}

std::string uuid() {
  char text[37];
  const std::uint64_t high = random_bits(), low = random_bits();
  std::snprintf(text, sizeof text, "%08x-%04x-4%03x-8%03x-%012llx", static_cast<unsigned>(high >> 32),
                static_cast<unsigned>(high >> 16) & 0xffff, static_cast<unsigned>(high) & 0xfff,
                static_cast<unsigned>(low >> 52), static_cast<unsigned long long>(low & 0xffffffffffff));
  return text;
}

// Fills `head … tail` with x to the size that all peers write.
std::string padded(const std::string& head, const std::string& tail) {
  return head + std::string(body_bytes - head.size() - tail.size(), 'x') + tail;
}

std::string body_of(std::int64_t number) {
  const std::string call = "c" + std::to_string(number / 2);
  if (number % 2 == 0) {
    return padded(R"({"call_id":")" + call + R"(","name":"fs.read","kind":"function","arguments":{"path":"runs/)" +
                      std::to_string(number % 1000) + R"(/input.txt","sha256":")" + hex(64) +
                      R"(","evidence":["ev://run/)" + hex(32) + R"(","ev://run/)" + hex(32) + R"("],"note":")",
                  R"("}})");
  }
  return padded(R"({"call_id":")" + call + R"(","status":"ok","duration_us":)" +
                    std::to_string(random_bits() % 100000) + R"(,"content":[{"type":"text","content":")" + hex(64) +
                    " ",
                R"("}]})");
}

// Bodies are created before the clock starts, as by the peers; ids are new for every event.
std::string event_of(std::int64_t number) {
  static const std::vector<std::string> pool = [] {
    std::vector<std::string> made;
    for (std::int64_t i = 0; i < 4096; ++i) {
      made.push_back(R"("type":")" + std::string(i % 2 == 0 ? "tool.called" : "tool.returned") + R"(","body":)" +
                     body_of(i));
    }
    return made;
  }();
  return pool[static_cast<std::size_t>(number) % pool.size()] + R"(,"event_id":")" + uuid() + "\"";
}

struct Client {
  int fd = -1;
  std::string run;
  std::string out;
  std::size_t written = 0;
  std::string in;
  std::int64_t number = 0;
  double sent = 0;
};

std::string request(Client& client, int batch) {
  std::string line = R"({"jsonrpc":"2.0","id":1,"method":"event.append","params":{"run_id":")" + client.run + "\",";
  if (batch == 1) {
    line += event_of(client.number++);
  } else {
    line += R"("events":[)";
    for (int i = 0; i < batch; ++i) line += (i ? ",{" : "{") + event_of(client.number++) + "}";
    line += "]";
  }
  return line + "}}\n";
}

int connect_to(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) die("connecting to " + path);
  return fd;
}

void start_run(Client& client) {
  const std::string line = R"({"jsonrpc":"2.0","id":0,"method":"run.start","params":{"run_id":")" + client.run +
                           R"(","agent":{"name":"bench"}}})"
                           "\n";
  if (::write(client.fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) die("run.start");
  char reply[4096];
  const ssize_t size = ::read(client.fd, reply, sizeof reply - 1);
  if (size <= 0 || std::string(reply, static_cast<std::size_t>(size)).find("\"result\"") == std::string::npos) {
    die("run.start answered " + std::string(reply, static_cast<std::size_t>(std::max<ssize_t>(size, 0))));
  }
}

// Returns false if the socket accepts no more bytes for now.
bool push(Client& client) {
  while (client.written < client.out.size()) {
    const ssize_t sent = ::send(client.fd, client.out.data() + client.written, client.out.size() - client.written,
                                MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) return false;
    if (sent < 0) die("send");
    client.written += static_cast<std::size_t>(sent);
  }
  return true;
}

struct BenchOptions {
  std::string socket_path, prefix = "bench-" + hex(6);
  int clients = 1, batch = 1;
  double secs = 6;
};

BenchOptions parse_options(int argc, char** argv) {
  BenchOptions options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    if (flag == "--socket")
      options.socket_path = value;
    else if (flag == "--clients")
      options.clients = std::stoi(value);
    else if (flag == "--secs")
      options.secs = std::stod(value);
    else if (flag == "--batch")
      options.batch = std::stoi(value);
    else if (flag == "--prefix")
      options.prefix = value;
    else
      die("no such option: " + flag);
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const BenchOptions options = parse_options(argc, argv);
  const int batch = options.batch;
  const int poller = ::epoll_create1(EPOLL_CLOEXEC);
  std::vector<Client> all(static_cast<std::size_t>(options.clients));
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].fd = connect_to(options.socket_path);
    all[i].run = options.prefix + "-" + std::to_string(i);
    start_run(all[i]);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = i;
    ::epoll_ctl(poller, EPOLL_CTL_ADD, all[i].fd, &event);
  }
  const auto send_next = [&](Client& client) {
    client.out = request(client, batch);
    client.written = 0;
    client.sent = now();
    while (!push(client)) ::usleep(50);
  };
  for (Client& client : all) send_next(client);

  const double start = now() + warmup_secs, stop = start + options.secs;
  std::vector<double> latencies;
  std::vector<epoll_event> ready(256);
  std::string buffer(1 << 20, '\0');
  std::int64_t events = 0;
  double last = now();
  while (last < stop) {
    const int count = ::epoll_wait(poller, ready.data(), static_cast<int>(ready.size()), 100);
    for (int i = 0; i < count; ++i) {
      Client& client = all[ready[static_cast<std::size_t>(i)].data.u64];
      const ssize_t size = ::recv(client.fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (size == 0) die("the daemon closed the connection");
      if (size < 0) continue;
      client.in.append(buffer.data(), static_cast<std::size_t>(size));
      if (client.in.back() != '\n') continue;
      if (client.in.find("\"error\"") != std::string::npos) die("an append was refused: " + client.in.substr(0, 400));
      client.in.clear();
      last = now();
      if (client.sent >= start && last < stop) {
        latencies.push_back(last - client.sent);
        events += batch;
      }
      send_next(client);
    }
    last = now();
  }
  std::sort(latencies.begin(), latencies.end());
  const auto quantile = [&](double p) {
    if (latencies.empty()) return 0.0;
    return 1e3 * latencies[std::min(latencies.size() - 1,
                                    static_cast<std::size_t>(p * static_cast<double>(latencies.size())))];
  };
  std::printf(
      "{\"name\": \"muniment/c%d/b%d\", \"events_per_s\": %.0f, \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"events\": %lld, \"secs\": %.2f}\n",
      options.clients, batch, static_cast<double>(events) / options.secs, quantile(0.5), quantile(0.99),
      static_cast<long long>(events), options.secs);
}
