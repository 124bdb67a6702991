// Drives libmicrohttpd from a libuv loop, and accepts connections.
#include "http/engine.hpp"

#include <fmt/format.h>
#include <microhttpd.h>
#include <uv.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "base/log.hpp"

namespace muniment::http {
namespace {

constexpr int accepts_per_turn = 64;
constexpr std::uint64_t accept_again_ms = 100;
constexpr const char* tls_versions = "NORMAL:-VERS-TLS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

Engine& engine_of(void* data) { return *static_cast<Engine*>(data); }

void* on_target(void*, const char* target, MHD_Connection* mhd) {
  const MHD_ConnectionInfo* const info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  auto* const connection = static_cast<Connection*>(info->socket_context);
  connection->begin(target);
  return connection;
}

MHD_Result on_request(void*, MHD_Connection*, const char*, const char* method, const char*, const char* data,
                      std::size_t* data_bytes, void** connection) {
  const std::string_view piece(data, *data_bytes);
  *data_bytes = 0;
  return static_cast<Connection*>(*connection)->receive(method, piece) ? MHD_YES : MHD_NO;
}

void on_finished(void*, MHD_Connection*, void** connection, MHD_RequestTerminationCode how) {
  if (*connection != nullptr) {
    static_cast<Connection*>(*connection)->finish(how == MHD_REQUEST_TERMINATED_COMPLETED_OK);
  }
}

void on_connection(void* engine, MHD_Connection* mhd, void** context, MHD_ConnectionNotificationCode what) {
  if (what == MHD_CONNECTION_NOTIFY_STARTED) {
    const int socket = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    *context = engine_of(engine).connected(mhd, socket);
  } else {
    engine_of(engine).disconnected(static_cast<Connection*>(*context));
  }
}

__attribute__((format(printf, 2, 0))) void on_log(void* engine, const char* format, va_list values) {
  std::array<char, 256> text{};
  const int size = std::vsnprintf(text.data(), text.size(), format, values);
  if (size > 0) engine_of(engine).said.assign(text.data());
}

}  // namespace

Engine::Engine(uv_loop_s* loop, Options options, Server::Handler handler)
    : loop_(loop), options_(std::move(options)), handler_(std::move(handler)) {}

Engine::~Engine() = default;

Status Engine::start() {
  if (options_.certificate_file.empty() != options_.key_file.empty()) {
    return Error(Errc::invalid_argument, "TLS needs a certificate and its key: give both files, or neither");
  }
  std::string certificate, key;
  if (!options_.certificate_file.empty()) {
    auto read = read_named(options_.certificate_file, limits::key_file_bytes_max);
    if (!read) return std::move(read).error().within("reading the certificate of the HTTP server");
    certificate = *std::move(read);
    read = read_named(options_.key_file, limits::key_file_bytes_max);
    if (!read) return std::move(read).error().within("reading the key of the HTTP server");
    key = *std::move(read);
  }
  ASSIGN_OR_RETURN(listener_, open_listener(options_.address, options_.port));
  RETURN_IF_ERROR(start_mhd(certificate, key));
  const int events = MHD_get_daemon_info(mhd_, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
  ready_ = new_poll(loop_, events, this);
  connecting_ = new_poll(loop_, listener_.socket.get(), this);
  if (ready_ == nullptr || connecting_ == nullptr) {
    close();
    return Error(Errc::system_error, "libuv cannot poll the sockets of the HTTP server");
  }
  due_ = new_timer(loop_, this);
  accept_again_ = new_timer(loop_, this);
  soon_ = new_idle(loop_, this);
  uv_poll_start(ready_.get(), UV_READABLE, [](uv_poll_t* handle, int, int) { engine_of(handle->data).run(); });
  start_accepting();
  return success();
}

Status Engine::start_mhd(const std::string& certificate, const std::string& key) {
  const bool tls = !certificate.empty();
  const auto text = [](const std::string& value) { return const_cast<char*>(value.c_str()); };
  std::array<MHD_OptionItem, 4> tls_options{{{MHD_OPTION_HTTPS_MEM_CERT, 0, text(certificate)},
                                             {MHD_OPTION_HTTPS_MEM_KEY, 0, text(key)},
                                             {MHD_OPTION_HTTPS_PRIORITIES, 0, const_cast<char*>(tls_versions)},
                                             {MHD_OPTION_END, 0, nullptr}}};
  const unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG |
                         (tls ? unsigned{MHD_USE_TLS} : 0U);
  mhd_ = MHD_start_daemon(
      flags, 0, nullptr, nullptr, on_request, this, MHD_OPTION_EXTERNAL_LOGGER, on_log, this,
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, options_.head_bytes_max + limits::http_parsing_bytes_per_connection,
      MHD_OPTION_CONNECTION_LIMIT, static_cast<unsigned>(options_.connections_max), MHD_OPTION_CONNECTION_TIMEOUT,
      static_cast<unsigned>(options_.idle.count()), MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_URI_LOG_CALLBACK,
      on_target, this, MHD_OPTION_NOTIFY_COMPLETED, on_finished, this, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
      this, MHD_OPTION_ARRAY, tls ? tls_options.data() : &tls_options.back(), MHD_OPTION_END);
  if (mhd_ != nullptr) return success();
  if (!tls) return Error(Errc::unavailable, "the HTTP server does not start: " + said);
  while (!said.empty() && said.back() == '\n') said.pop_back();
  return Error(Errc::invalid_argument,
               fmt::format("the certificate {} and the key {} cannot be used for TLS ({}). Give a PEM certificate, "
                           "followed by those that signed it, and its own PEM key without a password",
                           options_.certificate_file, options_.key_file, said));
}

void Engine::close() {
  closing_ = true;
  if (!busy_) shut();
}

void Engine::shut() {
  if (mhd_ == nullptr) return;
  const auto self = shared_from_this();
  busy_ = true;
  stop_accepting();
  ready_ = nullptr;  // closed before MHD closes the descriptor
  due_ = nullptr;
  soon_ = nullptr;
  for (const auto& [connection, owned] : connections_) connection->abort();  // MHD aborts on a suspended connection
  MHD_stop_daemon(std::exchange(mhd_, nullptr));
  call_closed();
  busy_ = false;
}

void Engine::start_accepting() {
  uv_poll_start(connecting_.get(), UV_READABLE, [](uv_poll_t* handle, int, int) { engine_of(handle->data).accept(); });
}

void Engine::stop_accepting() {
  connecting_ = nullptr;
  accept_again_ = nullptr;
  listener_.socket.reset();
}

// MHD's own accepting would leave clients beyond the limit in the backlog, and would spin without descriptors.
void Engine::accept() {
  for (int i = 0; i < accepts_per_turn; ++i) {
    Accepted accepted = accept_from(listener_.socket, options_.idle);
    if (!accepted.socket.open()) {
      if (errno == EAGAIN) return;
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return pause_accepting(errno);
    }
    if (!make_room()) {
      if (mhd_ == nullptr) return;
      if (!std::exchange(refusing_, true)) {
        log_warning("HTTP connections are refused", {{"connections", connections_.size()}});
      }
      continue;
    }
    refusing_ = false;
    // MHD closes the socket even if this fails.
    MHD_add_connection(mhd_, accepted.socket.release(), reinterpret_cast<const sockaddr*>(&accepted.address),
                       accepted.address_bytes);
  }
}

// Closes the oldest stranger if a further connection would exceed a limit. Returns false if there is no room.
bool Engine::make_room() {
  const std::size_t strangers_max =
      std::clamp(options_.connections_max / 2, std::size_t{1}, std::max(options_.strangers_max, std::size_t{1}));
  const bool full = connections_.size() >= options_.connections_max;
  if (!strangers_.empty() && (full || strangers_.size() >= strangers_max)) {
    const auto oldest = strangers_.begin();
    oldest->second->abort();
    strangers_.erase(oldest);
    run();
    if (mhd_ == nullptr) return false;
  }
  return connections_.size() < options_.connections_max;
}

// The process is out of descriptors or memory: clients wait in the backlog.
void Engine::pause_accepting(int error_number) {
  if (!std::exchange(refusing_, true)) {
    log_warning("cannot accept HTTP connections; clients wait", {{"error", std::strerror(error_number)}});
  }
  uv_poll_stop(connecting_.get());
  uv_timer_start(
      accept_again_.get(), [](uv_timer_t* handle) { engine_of(handle->data).start_accepting(); }, accept_again_ms, 0);
}

bool Engine::answering() const {
  return std::any_of(connections_.begin(), connections_.end(), [](const auto& one) { return one.first->answering(); });
}

Connection* Engine::connected(MHD_Connection* mhd, int socket) {
  auto connection = std::make_unique<Connection>(*this, mhd, socket, next_number_++);
  Connection* const raw = connection.get();
  strangers_.emplace(raw->number(), raw);
  connections_.emplace(raw, std::move(connection));
  return raw;
}

void Engine::disconnected(Connection* connection) {
  no_stranger(*connection);
  connections_.erase(connection);
}

void Engine::run() {
  enter([this] { MHD_run(mhd_); });
}

void Engine::abort(Connection& connection) {
  enter([&connection] { connection.abort(); });
}

void Engine::enter(const std::function<void()>& work) {
  const auto self = shared_from_this();
  busy_ = true;
  work();
  abort_slow();
  call_closed();
  busy_ = false;
  if (closing_) return shut();
  arm();
}

void Engine::abort_slow() {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now_ms()) {
    Connection* const slow = deadlines_.begin()->second;
    deadlines_.erase(deadlines_.begin());
    slow->abort_slow();
  }
}

void Engine::handle(std::shared_ptr<Exchange> exchange) {
  if (!closing_) handler_(std::move(exchange));
}

void Engine::lose(std::shared_ptr<Exchange> exchange) {
  lost_.push_back(std::move(exchange));
  run_soon();
}

void Engine::call_closed() {
  while (!lost_.empty()) {
    for (const auto& exchange : std::exchange(lost_, {})) {
      if (const auto call = std::exchange(exchange->on_closed, nullptr)) call();
    }
  }
}

void Engine::run_soon() {
  if (soon_ == nullptr) return;
  // An idle handle instead of a timer of 0 ms: libuv 1.44 would repeat the timer without polling any socket.
  uv_idle_start(soon_.get(), [](uv_idle_t* handle) {
    uv_idle_stop(handle);
    engine_of(handle->data).run();
  });
}

void Engine::arm() {
  MHD_UNSIGNED_LONG_LONG mhd_ms = 0;
  const bool timed = MHD_get_timeout(mhd_, &mhd_ms) == MHD_YES;
  if (timed && mhd_ms == 0) return run_soon();
  if (!timed && deadlines_.empty()) {
    uv_timer_stop(due_.get());
    return;
  }
  std::uint64_t wait_ms = timed ? mhd_ms : UINT64_MAX;
  if (!deadlines_.empty()) {
    wait_ms =
        std::min(wait_ms, static_cast<std::uint64_t>(std::max<std::int64_t>(deadlines_.begin()->first - now_ms(), 0)));
  }
  uv_timer_start(
      due_.get(), [](uv_timer_t* handle) { engine_of(handle->data).run(); }, std::max<std::uint64_t>(wait_ms, 1), 0);
}

void Engine::move_deadline(Connection& connection, std::int64_t old_ms, std::int64_t new_ms) {
  if (old_ms != 0) deadlines_.erase({old_ms, &connection});
  if (new_ms != 0) deadlines_.emplace(new_ms, &connection);
}

std::int64_t Engine::now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void Engine::count_answers(std::size_t before, std::size_t after) {
  answers_bytes_ += after - before;  // unsigned sums wrap as intended
  while (after > before && answers_bytes_ > options_.answers_bytes_max) {
    const auto largest = std::max_element(
        connections_.begin(), connections_.end(),
        [](const auto& one, const auto& other) { return one.first->answer_bytes() < other.first->answer_bytes(); });
    log_warning("an HTTP connection is closed",
                {{"unread_bytes", largest->first->answer_bytes()},
                 {"error", "the unread replies of all connections exceed their limit"}});
    largest->first->abort_slow();
  }
}

bool Engine::count_body(std::size_t bytes) {
  if (bodies_bytes_ + bytes > limits::http_bodies_bytes_max) return false;
  bodies_bytes_ += bytes;
  return true;
}

}  // namespace muniment::http
