#include "daemon/server.hpp"

#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/metrics.hpp"
#include "gateway/own_events.hpp"

namespace muniment::daemon {
namespace {

constexpr std::uint64_t deadline_tick_ms = 50;
constexpr std::uint64_t keep_alive_ms = 15'000;
constexpr std::chrono::seconds drain_at_most{5};
constexpr int backlog = 512;

template <typename Handle>
void close_handle(Handle* handle) {
  auto* base = reinterpret_cast<uv_handle_t*>(handle);
  if (!uv_is_closing(base)) uv_close(base, nullptr);
}

}  // namespace

Server::Server(ServerOptions options, StopSignals& signals, gateway::Services& services, gateway::WorkerPool& workers, const SchemaSet& schemas)
    : options_(std::move(options)), signals_(signals), services_(services),
      dispatcher_(services, workers, schemas, [this] { uv_async_send(&wake_); }), subscriptions_(services, dispatcher_) {
  uv_loop_init(&loop_);
  uv_async_init(&loop_, &wake_, [](uv_async_t* handle) { static_cast<Server*>(handle->data)->wake(); });
  uv_timer_init(&loop_, &deadlines_);
  uv_timer_init(&loop_, &keep_alive_);
  uv_timer_init(&loop_, &watchdog_);
  uv_poll_init(&loop_, &stop_asked_by_signal_, signals_.fd());
  uv_pipe_init(&loop_, &listener_, 0);
  dispatcher_.on_waiting = [this] { watch_deadlines(); };
  wake_.data = deadlines_.data = keep_alive_.data = watchdog_.data = stop_asked_by_signal_.data = listener_.data = this;
}

Server::~Server() {
  // Where it never ran, because it could not listen, its handles are still open; otherwise only close callbacks are left to run.
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
  ::unlink(path.c_str());  // the data folder's lock is held: whoever left it is gone
  const mode_t before = ::umask(0177);
  const int bound = uv_pipe_bind(&listener_, path.c_str());
  ::umask(before);
  if (bound != 0) return Error(Errc::unavailable, "binding " + path + ": " + uv_strerror(bound));
  bound_ = true;
  // The peer decides, not the mode.
  if (!options_.allowed_uids.empty() || options_.allowed_gid) ::chmod(path.c_str(), 0666);
  return success();
}

Status Server::open_listener() {
  auto handed = options_.manager.take_socket();
  if (!handed) return bind_own();
  const int opened = uv_pipe_open(&listener_, handed->fd.release());
  if (opened != 0) return Error(Errc::unavailable, "opening the socket that was handed over: " + std::string(uv_strerror(opened)));
  return success();
}

Status Server::listen() {
  std::signal(SIGPIPE, SIG_IGN);  // a client that is gone is an error of its write, not of the daemon
  RETURN_IF_ERROR(open_listener());
  const int listening = uv_listen(reinterpret_cast<uv_stream_t*>(&listener_), backlog, [](uv_stream_t* handle, int status) {
    if (status == 0) static_cast<Server*>(handle->data)->accept();
  });
  if (listening != 0) return Error(Errc::unavailable, "listening on " + options_.socket_path + ": " + uv_strerror(listening));
  uv_poll_start(&stop_asked_by_signal_, UV_READABLE, [](uv_poll_t* handle, int, int) {
    auto* self = static_cast<Server*>(handle->data);
    if (self->signals_.take()) self->begin_stop();
  });
  return success();
}

Result<gateway::Caller> Server::admit(const Peer& peer) {
  gateway::Caller caller;
  const std::uint32_t uid = peer.uid;
  caller.uid = uid;
  caller.actor = "uid:" + std::to_string(uid);
  caller.admin = uid == 0 || uid == ::geteuid();
  const bool listed = std::find(options_.allowed_uids.begin(), options_.allowed_uids.end(), uid) != options_.allowed_uids.end() ||
                      (options_.allowed_gid && peer.in_group(*options_.allowed_gid));
  if (caller.admin || listed) return caller;
  Error error(Errc::denied, "no access for uid " + std::to_string(uid) + "; the owner is uid " + std::to_string(::geteuid()) +
                                ". Add it: allowed_uids = [" + std::to_string(uid) + "] in muniment.toml");
  services_.refusals.note(caller.actor, {}, error, services_.clock.now());
  return error;
}

void Server::accept() {
  auto session = std::make_shared<Session>(&loop_, dispatcher_, subscriptions_, next_session_++);
  if (sessions_.size() >= limits::connections_max) {
    // Accepted only to be closed: a connection left in the backlog would wait for ever.
    session->start(reinterpret_cast<uv_stream_t*>(&listener_), [](const Peer&) -> Result<gateway::Caller> {
      return Error(Errc::over_budget, std::to_string(limits::connections_max) + " connections are open. Try again later.");
    }).ok();
    return;
  }
  session->on_closed = [this](std::uint64_t number) {
    sessions_.erase(number);
    metrics::process().connections.set(static_cast<std::int64_t>(sessions_.size()));
  };
  sessions_.emplace(session->number(), session);
  metrics::process().connections.set(static_cast<std::int64_t>(sessions_.size()));
  session->start(reinterpret_cast<uv_stream_t*>(&listener_), [this](const Peer& peer) { return admit(peer); }).ok();
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

// Ticks only while a request waits: at rest the loop does not wake up.
void Server::watch_deadlines() {
  if (stopped_ || uv_is_active(reinterpret_cast<uv_handle_t*>(&deadlines_))) return;
  uv_timer_start(&deadlines_, [](uv_timer_t* handle) {
    auto* self = static_cast<Server*>(handle->data);
    const bool waiting = self->dispatcher_.expire(self->services_.clock.monotonic());
    self->stop_when_idle();
    if (!waiting && !self->stopping_) uv_timer_stop(handle);
  }, deadline_tick_ms, deadline_tick_ms);
}

void Server::log_grew() { grew_ = true; }

void Server::appends_answered() { uv_async_send(&wake_); }

void Server::stop() {
  stop_asked_ = true;
  uv_async_send(&wake_);
}

void Server::ready() { options_.manager.ready("serves " + options_.socket_path); }

void Server::run() {
  // From the loop's thread: a loop that hangs is what a watchdog is there to see.
  if (const auto every = options_.manager.alive_every()) {
    const auto ms = static_cast<std::uint64_t>(every->count());
    uv_timer_start(&watchdog_, [](uv_timer_t* handle) { static_cast<Server*>(handle->data)->options_.manager.alive(); }, 0, ms);
  }
  uv_timer_start(&keep_alive_, [](uv_timer_t* handle) {
    auto* self = static_cast<Server*>(handle->data);
    if (self->subscriptions_.any()) self->subscriptions_.keep_alive();
    gateway::append_refusals(self->services_, false);
    if (self->on_tick) self->on_tick();
  }, keep_alive_ms, keep_alive_ms);
  uv_run(&loop_, UV_RUN_DEFAULT);
}

// No new connections from here on; what is in flight is answered, for a few seconds at most.
void Server::begin_stop() {
  if (std::exchange(stopping_, true)) return;
  options_.manager.stopping();
  close_handle(&listener_);
  if (bound_) ::unlink(options_.socket_path.c_str());
  stop_at_latest_ = services_.clock.monotonic() + drain_at_most;
  stop_when_idle();
  watch_deadlines();
}

void Server::stop_when_idle() {
  if (!stopping_ || stopped_) return;
  if (dispatcher_.waiting() > 0 && services_.clock.monotonic() < stop_at_latest_) return;
  stopped_ = true;
  for (auto sessions = sessions_; const auto& [number, session] : sessions) session->close();
  close_handle(&stop_asked_by_signal_);
  close_handle(&deadlines_);
  close_handle(&keep_alive_);
  close_handle(&watchdog_);
  close_handle(&wake_);  // the last handle: uv_run returns
}

}  // namespace muniment::daemon
