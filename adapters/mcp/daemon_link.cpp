#include "adapters/mcp/daemon_link.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "adapters/mcp/proxy_limits.hpp"
#include "base/json/json.hpp"
#include "base/text.hpp"
#include "client/connect/autostart.hpp"

namespace muniment::cli {
namespace {

constexpr std::chrono::milliseconds first_pause{100};
constexpr std::chrono::milliseconds pause_max{1000};
// A connection that ends earlier does not end an outage.
constexpr std::chrono::milliseconds stable_after{1000};
// Delay before a daemon is started, so that one being restarted is reached first.
constexpr std::chrono::milliseconds start_grace{1000};

// Runs in the child: starts the daemon and reports the result, "+<pid>" or "-<why>".
[[noreturn]] void start_and_tell(Session& session, int tell) {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, descriptor);
  std::string said;
  if (const auto config = session.config(); !config) {
    said = "-" + config.error().message;
  } else if (const auto pid = start_daemon(*config, session.config_inputs(), session.continue_restored); !pid) {
    said = "-" + pid.error().message;
  } else {
    said = fmt::format("+munimentd (pid {}) for {}", *pid, config->data);
  }
  for (std::size_t at = 0; at < said.size();) {
    const ssize_t written = ::write(tell, said.data() + at, said.size() - at);
    if (written <= 0) break;
    at += static_cast<std::size_t>(written);
  }
  ::_exit(0);
}

}  // namespace

DaemonLink::DaemonLink(Session& session, std::chrono::milliseconds patience) : session_(session), patience_(patience) {}

// Ends only the child that waits; a daemon being started continues to start.
DaemonLink::~DaemonLink() {
  if (starter_ <= 0) return;
  ::kill(starter_, SIGKILL);
  ::waitpid(starter_, nullptr, 0);
}

void DaemonLink::want() {
  if (state_ == State::connected) return;
  if (state_ == State::unreachable) {
    state_ = State::connecting;
    only_once_ = true;
    next_attempt_ = not_before_;
  }
  wanted_ = true;
}

void DaemonLink::probe() {
  if (state_ != State::unreachable) return;
  state_ = State::connecting;
  only_once_ = true;
  wanted_ = false;
  next_attempt_ = not_before_;
}

void DaemonLink::step() {
  if (starter_ > 0) take_start();
  if (state_ == State::connecting && starter_ <= 0 && std::chrono::steady_clock::now() >= next_attempt_) attempt();
}

// A failed write becomes visible as the end of the connection on the next read.
void DaemonLink::flush() {
  if (writer_) writer_->flush();
}

void DaemonLink::send(std::string_view bytes) {
  if (writer_) writer_->add(bytes);
}

std::optional<std::string> DaemonLink::next_line() {
  while (reader_) {
    if (auto piece = reader_->next()) {
      if (!piece->whole()) break;
      if (piece->bytes.ends_with('\n')) piece->bytes.pop_back();
      if (!std::exchange(heard_, true) && take_refusal(piece->bytes)) return std::nullopt;
      return std::move(piece->bytes);
    }
    if (reader_->ended()) break;
    pollfd readable{reader_->descriptor(), POLLIN, 0};
    if (::poll(&readable, 1, 0) <= 0) return std::nullopt;
    reader_->fill();
  }
  if (reader_) broke();
  return std::nullopt;
}

int DaemonLink::wait(std::vector<pollfd>& polled, bool reading) const {
  if (starter_ > 0) polled.push_back({starter_says_.get(), POLLIN, 0});
  if (client_ && (reading || unsent() > 0)) {
    const auto events = static_cast<short>((reading ? POLLIN : 0) | (unsent() > 0 ? POLLOUT : 0));
    polled.push_back({client_->descriptor(), events, 0});
  }
  if (state_ != State::connecting || starter_ > 0) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_attempt_ - std::chrono::steady_clock::now());
  return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
}

void DaemonLink::attempt() {
  const auto config = session_.config();
  if (!config) return failed(config.error().message);
  auto made = Client::connect(config->socket, std::chrono::seconds(1));
  if (made) {
    client_.emplace(std::move(*made));
    reader_.emplace(client_->descriptor(), proxy::message_bytes_max);
    writer_.emplace(client_->descriptor());
    state_ = State::connected;
    connected_at_ = std::chrono::steady_clock::now();
    ++connection_;
    heard_ = refused_ = false;
    problem_.clear();
    return;
  }
  const bool may_start = wanted_ && !session_.options.no_autostart && made.error().code == Errc::unavailable;
  const bool in_grace = !only_once_ && std::chrono::steady_clock::now() + patience_ < until_ + start_grace;
  if (may_start && !in_grace) return start_daemon_aside();
  failed(made.error().message);
}

void DaemonLink::start_daemon_aside() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return failed(fmt::format("cannot create a pipe: {}", std::strerror(errno)));
  Fd read_end(ends[0]);
  const Fd write_end(ends[1]);
  starter_ = ::fork();
  if (starter_ == 0) start_and_tell(session_, write_end.get());
  if (starter_ < 0) return failed(fmt::format("cannot start a process: {}", std::strerror(errno)));
  starter_says_ = std::move(read_end);
  said_.clear();
}

void DaemonLink::take_start() {
  pollfd readable{starter_says_.get(), POLLIN, 0};
  char piece[4096];
  for (;;) {
    if (::poll(&readable, 1, 0) <= 0) return;
    const ssize_t got = ::read(starter_says_.get(), piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    said_.append(piece, static_cast<std::size_t>(got));
  }
  ::waitpid(starter_, nullptr, 0);
  starter_ = -1;
  starter_says_.reset();
  next_attempt_ = {};
  if (said_.starts_with('+')) {
    fmt::print(stderr, "muniment: started {}; stop it with: {}\n", escape_for_terminal(said_.substr(1)),
               session_.advised("muniment down"));
    wanted_ = false;
  } else {
    failed(said_.size() > 1 ? said_.substr(1) : "munimentd could not be started");
  }
}

void DaemonLink::failed(std::string why) {
  const auto now = std::chrono::steady_clock::now();
  problem_ = std::move(why);
  next_attempt_ = now + next_pause();
  if (only_once_ || now >= until_) {
    state_ = State::unreachable;
    wanted_ = false;
  }
}

std::chrono::milliseconds DaemonLink::next_pause() {
  last_pause_ = std::clamp(2 * last_pause_, first_pause, pause_max);
  return last_pause_;
}

// A daemon that refuses a connection sends an error of its protocol without a request and closes the connection.
bool DaemonLink::take_refusal(std::string_view line) {
  const auto document = json::parse(line);
  if (!document) return false;
  const json::Value error = document->root()["error"];
  const std::string code = error["data"]["code"].string_or("");
  if (!document->root()["id"].is(json::Kind::null) || code.empty()) return false;
  disconnect();
  refused_ = true;
  const std::chrono::milliseconds asked(error["data"]["retry_after_ms"].as_int().value_or(0));
  if (code == name_of(Errc::denied)) only_once_ = true;
  failed(error["message"].string_or(code));
  not_before_ = std::chrono::steady_clock::now() + asked;
  next_attempt_ = std::max(next_attempt_, not_before_);
  return true;
}

void DaemonLink::disconnect() {
  reader_.reset();
  writer_.reset();
  client_.reset();
  state_ = State::connecting;
}

void DaemonLink::broke() {
  const auto now = std::chrono::steady_clock::now();
  const bool stable = now - connected_at_ >= stable_after;
  // The time limit of an outage starts at its beginning.
  if (stable || until_ == Time{}) until_ = now + patience_;
  if (stable) last_pause_ = {};
  disconnect();
  only_once_ = false;
  wanted_ = false;
  problem_ = "the daemon closed the connection";
  next_attempt_ = now + (stable ? std::chrono::milliseconds(0) : next_pause());
  if (now >= until_) state_ = State::unreachable;
}

}  // namespace muniment::cli
