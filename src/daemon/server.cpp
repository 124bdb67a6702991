// Runs the event loop: the listening socket, the sessions, the timers and the stop.
#include "daemon/server.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/metrics.hpp"
#include "gateway/append/own_events.hpp"

namespace muniment::daemon {
namespace {

constexpr std::uint64_t deadline_tick_ms = 50;
constexpr std::uint64_t keep_alive_ms = 15'000;
constexpr std::uint64_t mcp_tick_ms = 1'000;
constexpr std::chrono::seconds drain_at_most{5};
constexpr std::chrono::seconds leave_at_most{2};
constexpr int backlog = 512;
constexpr int accepts_per_turn = 64;
constexpr std::uint64_t accept_again_ms = 100;
constexpr std::int64_t refused_retry_ms = 1'000;

template <typename Handle>
void close_handle(Handle* handle) {
  auto* base = reinterpret_cast<uv_handle_t*>(handle);
  if (!uv_is_closing(base)) uv_close(base, nullptr);
}

}  // namespace

Server::Server(ServerOptions options, StopSignals& signals, gateway::Services& services, gateway::WorkerPool& workers,
               const SchemaSet& schemas)
    : options_(std::move(options)),
      signals_(signals),
      services_(services),
      dispatcher_(services, workers, schemas, [this] { uv_async_send(&wake_); }),
      subscriptions_(services, dispatcher_),
      mcp_(services.clock, dispatcher_, subscriptions_, options_.mcp, options_.record_mcp, options_.mcp_files),
      executor_(&loop_, [this](Fd connection, const Peer& peer) { return serve(std::move(connection), peer, true); }) {
  uv_loop_init(&loop_);
  uv_async_init(&loop_, &wake_, [](uv_async_t* handle) { static_cast<Server*>(handle->data)->wake(); });
  uv_timer_init(&loop_, &deadlines_);
  uv_timer_init(&loop_, &keep_alive_);
  uv_timer_init(&loop_, &watchdog_);
  uv_timer_init(&loop_, &mcp_tick_);
  uv_poll_init(&loop_, &stop_asked_by_signal_, signals_.fd());
  uv_timer_init(&loop_, &accept_again_);
  dispatcher_.on_waiting = [this] { watch_deadlines(); };
  mcp_.on_waiting = [this] { watch_mcp(); };
  wake_.data = deadlines_.data = keep_alive_.data = watchdog_.data = stop_asked_by_signal_.data = accept_again_.data =
      mcp_tick_.data = this;
  unread_.on_full = [this] { close_largest(); };
}

Server::~Server() {
  http_.reset();  // it closes its own handles
  executor_.close();
  // If the loop never ran, because listening failed, its handles are still open; otherwise only close callbacks remain.
  const auto close_it = [](uv_handle_t* handle, void*) {
    if (uv_is_closing(handle) == 0) uv_close(handle, nullptr);
  };
  uv_walk(&loop_, close_it, nullptr);
  while (uv_loop_close(&loop_) == UV_EBUSY) uv_run(&loop_, UV_RUN_NOWAIT);
}

Status Server::bind_own() {
  const std::string& path = options_.socket_path;
  if (path.size() >= sizeof(sockaddr_un{}.sun_path)) {
    return Error(Errc::invalid_argument, "the socket's path is " + std::to_string(path.size()) + " bytes, limit " +
                                             std::to_string(sizeof(sockaddr_un{}.sun_path) - 1) +
                                             ". Set a shorter one: socket = \"/run/muniment.sock\"");
  }
  ::unlink(path.c_str());  // the lock on the data folder is held, so the process that left the socket has ended
  listener_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, path.size());
  const mode_t before = ::umask(0177);
  const int bound = ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  ::umask(before);
  if (bound != 0) return Error(Errc::unavailable, "binding " + path + ": " + std::strerror(errno));
  bound_ = true;
  // Access is decided by the peer's credentials, not by the file mode.
  if (!options_.allowed_uids.empty() || options_.allowed_gid) ::chmod(path.c_str(), 0666);
  return success();
}

Status Server::open_listener() {
  auto handed = options_.manager.take_socket();
  if (!handed) return bind_own();
  listener_ = std::move(handed->fd);
  return success();
}

Status Server::listen() {
  std::signal(SIGPIPE, SIG_IGN);  // a write to a disconnected client must return an error and not end the daemon
  RETURN_IF_ERROR(open_listener());
  if (::listen(listener_.get(), backlog) != 0)
    return Error(Errc::unavailable, "listening on " + options_.socket_path + ": " + std::strerror(errno));
  // uv_listen would retry accept without returning to the loop while the process is out of descriptors.
  if (const int polled = uv_poll_init(&loop_, &connecting_, listener_.get()); polled != 0) {
    return Error(Errc::unavailable, "polling " + options_.socket_path + ": " + uv_strerror(polled));
  }
  connecting_.data = this;
  if (options_.http) {
    http_ = std::make_unique<McpHttp>(mcp_, *std::move(options_.http));
    http_->next_connection = [this] { return next_session_++; };
    RETURN_IF_ERROR(http_->listen(&loop_));
  }
  if (options_.executor) {
    if (const Status listening = executor_.listen(); !listening)
      log_warning("commands are not observed", {{"error", listening.error().message}});
    services_.executor = executor_.name();
  }
  start_accepting();
  uv_poll_start(&stop_asked_by_signal_, UV_READABLE, [](uv_poll_t* handle, int, int) {
    auto* self = static_cast<Server*>(handle->data);
    if (const auto signal = self->signals_.take()) {
      log_info("a stop is requested", {{"by", *signal}});
      self->begin_stop();
    }
  });
  return success();
}

Result<gateway::Caller> Server::admit(const Peer& peer) {
  gateway::Caller caller;
  const std::uint32_t uid = peer.uid;
  caller.uid = uid;
  caller.process = peer.process;
  caller.actor = "uid:" + std::to_string(uid);
  caller.admin = uid == 0 || uid == ::geteuid();
  const bool listed =
      std::find(options_.allowed_uids.begin(), options_.allowed_uids.end(), uid) != options_.allowed_uids.end() ||
      (options_.allowed_gid && peer.in_group(*options_.allowed_gid));
  if (!caller.admin && !listed) {
    Error error(Errc::denied, "no access for uid " + std::to_string(uid) + "; the owner is uid " +
                                  std::to_string(::geteuid()) + ". Add it: allowed_uids = [" + std::to_string(uid) +
                                  "] in muniment.toml");
    services_.refusals.note(caller.actor, {}, error, services_.clock.now());
    return error;
  }
  if (const std::size_t limit = services_.connections_max; sessions_.size() >= limit) {
    Error error(
        Errc::over_budget,
        std::to_string(limit) + " connections are open, which is the limit. Close some and retry" +
            (limit < limits::connections_max ? ", or raise the daemon's limit of open files (LimitNOFILE=)." : "."));
    error.limit = static_cast<std::int64_t>(limit);
    error.retry_after_ms = refused_retry_ms;
    note_refused(error.message);
    return error;
  }
  refusing_ = false;
  return caller;
}

// Logs once, until a connection is admitted again.
void Server::note_refused(std::string_view why) {
  if (!std::exchange(refusing_, true)) log_warning("connections are refused", {{"error", why}});
}

void Server::start_accepting() {
  uv_poll_start(&connecting_, UV_READABLE,
                [](uv_poll_t* handle, int, int) { static_cast<Server*>(handle->data)->accept(); });
}

void Server::accept() {
  for (int i = 0; i < accepts_per_turn; ++i) {
    Fd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (connection.open()) {
      if (const Result<Peer> peer = peer_of(connection.get())) serve(std::move(connection), *peer, false);
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return pause_accepting(errno);
    }
  }
}

// The process is out of descriptors or memory: clients wait in the backlog while the loop serves the open connections.
void Server::pause_accepting(int error) {
  note_refused(std::strerror(error));
  uv_poll_stop(&connecting_);
  uv_timer_start(
      &accept_again_,
      [](uv_timer_t* handle) {
        auto* self = static_cast<Server*>(handle->data);
        if (!self->stopping_) self->start_accepting();
      },
      accept_again_ms, 0);
}

bool Server::serve(Fd connection, const Peer& peer, bool observed) {
  Result<gateway::Caller> caller = admit(peer);
  if (caller) caller->observed = observed;
  const bool admitted = caller.ok();
  auto session = std::make_shared<Session>(&loop_, dispatcher_, subscriptions_, mcp_, unread_, next_session_++);
  session->on_closed = [this](std::uint64_t number) {
    sessions_.erase(number);
    metrics::process().connections.set(static_cast<std::int64_t>(sessions_.size()));
  };
  sessions_.emplace(session->number(), session);
  metrics::process().connections.set(static_cast<std::int64_t>(sessions_.size()));
  session->start(std::move(connection), std::move(caller));
  return admitted;
}

void Server::wake() {
  if (stop_asked_) begin_stop();
  dispatcher_.run_completions();
  if (grew_.exchange(false)) subscriptions_.committed();
  for (const auto& [number, session] : sessions_) {
    if (!session->reading()) session->resume_if_possible();
  }
  stop_when_idle();
}

// The timer runs only while a request waits, so that an idle loop does not wake up.
void Server::watch_deadlines() {
  if (stopped_ || uv_is_active(reinterpret_cast<uv_handle_t*>(&deadlines_))) return;
  uv_timer_start(
      &deadlines_,
      [](uv_timer_t* handle) {
        auto* self = static_cast<Server*>(handle->data);
        const bool waiting = self->dispatcher_.expire(self->services_.clock.monotonic());
        self->stop_when_idle();
        if (!waiting && !self->stopping_) uv_timer_stop(handle);
      },
      deadline_tick_ms, deadline_tick_ms);
}

// The timer runs only while a host waits for an answer.
void Server::watch_mcp() {
  if (stopped_ || uv_is_active(reinterpret_cast<uv_handle_t*>(&mcp_tick_))) return;
  uv_timer_start(
      &mcp_tick_,
      [](uv_timer_t* handle) {
        auto* self = static_cast<Server*>(handle->data);
        if (!self->mcp_.tick()) uv_timer_stop(handle);
      },
      mcp_tick_ms, mcp_tick_ms);
}

void Server::log_grew() { grew_ = true; }

void Server::appends_answered() { uv_async_send(&wake_); }

void Server::stop() {
  stop_asked_ = true;
  uv_async_send(&wake_);
}

void Server::ready() { options_.manager.ready("serves " + options_.socket_path); }

void Server::run() {
  // Sent from the loop's thread, so that the watchdog detects a loop that hangs.
  if (const auto every = options_.manager.alive_every()) {
    const auto ms = static_cast<std::uint64_t>(every->count());
    uv_timer_start(
        &watchdog_, [](uv_timer_t* handle) { static_cast<Server*>(handle->data)->options_.manager.alive(); }, 0, ms);
  }
  uv_timer_start(
      &keep_alive_,
      [](uv_timer_t* handle) {
        auto* self = static_cast<Server*>(handle->data);
        if (self->subscriptions_.any()) self->subscriptions_.keep_alive();
        if (self->http_) self->http_->keep_alive();
        self->close_silent();
        gateway::append_refusals(self->services_, false);
        if (self->on_tick) self->on_tick();
      },
      keep_alive_ms, keep_alive_ms);
  uv_run(&loop_, UV_RUN_DEFAULT);
}

void Server::close_silent() {
  for (const auto& [number, session] : sessions_) {
    if (session->silent_ms() > limits::unread_ms_max) session->close_unread("the client does not read its replies");
  }
}

// The unread replies of all connections exceed their limit: closes the connections with the most.
void Server::close_largest() {
  while (unread_.bytes > limits::unread_bytes_max) {
    const auto largest = std::max_element(sessions_.begin(), sessions_.end(), [](const auto& one, const auto& other) {
      return one.second->unread_bytes() < other.second->unread_bytes();
    });
    largest->second->close_unread("the unread replies of all connections exceed their limit");
  }
}

// Accepts no more connections; answers the requests in flight for a few seconds at most.
void Server::begin_stop() {
  if (std::exchange(stopping_, true)) return;
  options_.manager.stopping();
  close_handle(&connecting_);
  listener_.reset();
  if (bound_) ::unlink(options_.socket_path.c_str());
  if (http_) http_->stop();
  stop_at_latest_ = services_.clock.monotonic() + drain_at_most;
  stop_when_idle();
  watch_deadlines();
}

bool Server::busy() const { return dispatcher_.waiting() > 0 || (http_ && http_->answering()); }

// MCP sessions end last, because ending a run is one more request.
void Server::stop_when_idle() {
  if (!stopping_ || stopped_) return;
  const Monotonic now = services_.clock.monotonic();
  if (busy() && now < stop_at_latest_) return;
  if (!std::exchange(leaving_, true)) {
    mcp_.stop();
    if (http_) http_->end_all();
    stop_at_latest_ = now + leave_at_most;
    if (busy()) return;
  }
  stopped_ = true;
  if (http_) http_->close();
  executor_.close();
  for (auto sessions = sessions_; const auto& [number, session] : sessions) session->close();
  close_handle(&stop_asked_by_signal_);
  close_handle(&deadlines_);
  close_handle(&keep_alive_);
  close_handle(&watchdog_);
  close_handle(&mcp_tick_);
  close_handle(&accept_again_);
  close_handle(&wake_);  // the last handle: uv_run returns
}

}  // namespace muniment::daemon
