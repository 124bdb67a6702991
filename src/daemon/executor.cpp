#include "daemon/executor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "base/log.hpp"
#include "base/process/executor_socket.hpp"
#include "base/process/passed_descriptors.hpp"

namespace muniment::daemon {
namespace {

constexpr std::string_view removed_suffix = " (deleted)";  // of the link /proc/self/exe after an upgrade

// Returns the path of `muniment` in the folder of this program.
Result<std::string> find_program() {
  std::string path(4096, '\0');
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
  if (size <= 0) return Error(Errc::unavailable, "the path of munimentd is unknown");
  path.resize(static_cast<std::size_t>(size));
  if (path.ends_with(removed_suffix)) path.resize(path.size() - removed_suffix.size());
  path = path.substr(0, path.rfind('/') + 1) + "muniment";
  if (::access(path.c_str(), X_OK) != 0) return Error(Errc::unavailable, "there is no program " + path);
  return path;
}

// The name cannot be guessed, so that no other process can listen at it before.
std::string random_name() {
  std::random_device random;
  return fmt::format("muniment-executor-{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

}  // namespace

struct Executor::Poll {
  uv_poll_t handle{};
  Fd fd;
  Executor* executor = nullptr;
  void (Executor::*on_readable)() = nullptr;

  void begin() {
    uv_poll_start(&handle, UV_READABLE, [](uv_poll_t* polled, int, int) {
      const auto* const self = static_cast<const Poll*>(polled->data);
      (self->executor->*self->on_readable)();
    });
  }
};

Executor::Poll* Executor::watch(Fd fd, void (Executor::*on_readable)()) {
  auto* const poll = new Poll{{}, std::move(fd), this, on_readable};
  uv_poll_init(loop_, &poll->handle, poll->fd.get());
  poll->handle.data = poll;
  poll->begin();
  return poll;
}

void Executor::stop(Poll*& poll) {
  if (poll == nullptr) return;
  uv_close(reinterpret_cast<uv_handle_t*>(&std::exchange(poll, nullptr)->handle),
           [](uv_handle_t* handle) { delete static_cast<Poll*>(handle->data); });
}

Status Executor::listen() {
  ASSIGN_OR_RETURN(program_, find_program());
  std::string name = random_name();
  ASSIGN_OR_RETURN(Fd listener, listen_as_executor(name));
  name_ = std::move(name);
  connecting_ = watch(std::move(listener), &Executor::start);
  return success();
}

// A caller waits. If no executor can be started, it is turned away, and then runs its command itself.
void Executor::start() {
  const Status started = try_start();
  if (started) {
    uv_poll_stop(&connecting_->handle);
    return;
  }
  log_warning("the executor does not start", {{"error", started.error().message}});
  const Fd refused(::accept4(connecting_->fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
}

Status Executor::try_start() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return Error(Errc::unavailable, std::string("a channel: ") + std::strerror(errno));
  Fd ours(ends[0]);
  const Fd theirs(ends[1]);
  ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
  ASSIGN_OR_RETURN(child_, spawn({{program_, "--executor-child"}, {connecting_->fd.get(), theirs.get()}}));
  control_ = watch(std::move(ours), &Executor::admit);
  return success();
}

// The executor asks to admit a caller, whose credentials the kernel knows, and passes a new connection for it.
void Executor::admit() {
  std::array<char, 16> bytes{};
  PassedMessage request = receive_message(control_->fd.get(), bytes);
  if (request.size == 0) {
    if (request.none) return;
    child_->kill();  // it may wait for an answer to a message that was cut
    log_warning("the executor ended; the next command starts it again", {{"by", child_->wait().text}});
    child_.reset();
    stop(control_);
    connecting_->begin();
    return;
  }
  bool admitted = false;
  if (request.descriptors.size() == 2) {
    if (const Result<Peer> peer = peer_of(request.descriptors[0].get()))
      admitted = serve_(std::move(request.descriptors[1]), *peer);
  }
  send_message(control_->fd.get(), admitted ? "y" : "n");
}

void Executor::close() {
  child_.reset();
  stop(control_);
  stop(connecting_);
}

}  // namespace muniment::daemon
