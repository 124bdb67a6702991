// The executor, its relays and its workers.
#include "cli/executor/executor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.hpp"
#include "base/process/executor_socket.hpp"
#include "base/process/passed_descriptors.hpp"
#include "base/process/user.hpp"
#include "cli/exec/tree_digest.hpp"
#include "cli/executor/front_process.hpp"
#include "cli/executor/request.hpp"
#include "client/connect/upload.hpp"

namespace muniment::cli {
namespace {

constexpr int listener_fd = 3;
constexpr int control_fd = 4;
constexpr gid_t nobody_gid = 65'534;
constexpr std::size_t groups_max = 65'536;  // the kernel's NGROUPS_MAX

struct Caller {
  ucred credentials{};
  std::vector<gid_t> groups;
  Fd process;
};

bool read_caller(int connection, Caller& caller) {
  socklen_t length = sizeof caller.credentials;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &caller.credentials, &length) != 0) return false;
  caller.groups.resize(groups_max);
  length = static_cast<socklen_t>(caller.groups.size() * sizeof(gid_t));
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERGROUPS, caller.groups.data(), &length) != 0) return false;
  caller.groups.resize(length / sizeof(gid_t));
  caller.process = process_of_peer(connection, caller.credentials.pid);
  return caller.process.open();
}

// A user without an entry in the database belongs to no group.
Caller user_of(uid_t uid) {
  Caller user;
  user.credentials.uid = uid;
  user.credentials.gid = nobody_gid;
  const passwd* const entry = ::getpwuid(uid);
  if (uid == ::geteuid()) user.credentials.gid = ::getegid();
  if (entry == nullptr) return user;
  user.credentials.gid = entry->pw_gid;
  int count = 256;
  user.groups.resize(256);
  if (::getgrouplist(entry->pw_name, entry->pw_gid, user.groups.data(), &count) < 0) count = 0;
  user.groups.resize(static_cast<std::size_t>(count));
  return user;
}

void tell(int connection, RelayMessage::Kind kind, int status, std::string_view reason = {}) {
  RelayMessage message;
  message.kind = kind;
  message.status = status;
  reason.copy(message.reason, sizeof message.reason - 1);
  send_message(connection, {reinterpret_cast<const char*>(&message), sizeof message});
}

// Becomes the caller's user, for good. An executor that is not root can only run commands of its own user.
std::string_view become(const Caller& caller) {
  const uid_t uid = caller.credentials.uid;
  if (::geteuid() == 0) {
    ::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);  // a new one: the daemon's keys are not the caller's
    if (!become_user(uid, caller.credentials.gid, caller.groups)) return "the executor cannot become your user";
  } else if (::geteuid() != uid) {
    return "the daemon runs as another user, and not as root";
  }
  // Other processes of the user can neither trace this process nor open its descriptors.
  return ::prctl(PR_SET_DUMPABLE, 0) == 0 ? "" : "the executor cannot protect its worker";
}

// Answers the daemon with the digest of a tree, as the user of the request.
[[noreturn]] void answer_daemon(int connection) {
  ::close(listener_fd);
  ::close(control_fd);
  TreeRequest request;
  if (receive_message(connection, {reinterpret_cast<char*>(&request), sizeof request}).size != sizeof request)
    ::_exit(1);
  request.folder[sizeof request.folder - 1] = '\0';
  ::alarm(request.seconds);  // ends this process
  std::string digest;
  const auto caller = static_cast<pid_t>(request.process);
  if (confinement_of(caller).empty() && (join_group_of(caller) || ::geteuid() != 0) &&
      become(user_of(request.uid)).empty() && ::chdir(request.folder) == 0)
    digest = tree_digest(".");
  send_message(connection, digest + '.');
  ::_exit(0);
}

// The process between a front and its worker.
class Relay {
 public:
  Relay(Fd connection, Fd daemon, Caller caller)
      : connection_(std::move(connection)), daemon_(std::move(daemon)), caller_(std::move(caller)) {}

  // Returns in the worker only; the relay exits.
  ExecutorRequest run() {
    ::alarm(limits::executor_request_seconds);  // ends this process
    ::setsid();
    RequestMessage message = receive_request(connection_.get());
    if (const std::string_view refusal = take_over(); !refusal.empty()) refuse(refusal);
    const auto state = front_state(caller_.credentials.pid);
    if (!state) refuse("your process cannot be examined");
    // The facts were those of this process, and not of a later one with the same number.
    if (!is_alive(caller_.process)) refuse("your process has ended");
    auto request = read_request(std::move(message));
    if (!request) refuse(request.error().message);
    ::alarm(0);
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    const pid_t worker = ::fork();
    if (worker < 0) refuse("the machine can start no process");
    ::setpgid(worker, worker);  // with its parent in the session, the group can be stopped
    if (worker == 0) {
      connection_.reset();
      caller_.process.reset();
      inherit(*state);
      return *std::move(request);
    }
    request = Error(Errc::unavailable, "");  // closes the copies of the streams
    daemon_.reset();
    serve(worker, (state->ignored >> (SIGHUP - 1) & 1) != 0 ? SIGTERM : SIGHUP);
  }

  Execution execution() { return {caller_.credentials.pid, std::move(daemon_)}; }

 private:
  // Makes this process one of the caller's user and control group. Returns the reason why not; empty: done.
  std::string_view take_over() {
    const pid_t front = caller_.credentials.pid;
    if (const std::string_view confined = confinement_of(front); !confined.empty()) return confined;
    // A user who is not root can leave its control group in other ways, so that only root's executor insists.
    if (!join_group_of(front) && ::geteuid() == 0)
      return "your process is in another control group, which the executor cannot join";
    return become(caller_);
  }

  [[noreturn]] void refuse(std::string_view reason) {
    tell(connection_.get(), RelayMessage::Kind::refused, 0, reason);
    ::_exit(0);
  }

  // `lost`: tells the worker that its front was killed; SIGTERM for a caller that ignores SIGHUP, as under nohup.
  [[noreturn]] void serve(pid_t worker, int lost) {
    sigset_t child;
    ::sigemptyset(&child);
    ::sigaddset(&child, SIGCHLD);
    const int changes = ::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    ::close_range(STDIN_FILENO, STDERR_FILENO, 0);
    tell(connection_.get(), RelayMessage::Kind::running, worker);
    for (bool connected = true;;) {
      pollfd waits[] = {{changes, POLLIN, 0}, {connected ? connection_.get() : -1, POLLIN, 0}};
      ::poll(waits, 2, -1);
      if (waits[0].revents != 0) note_changes(changes, worker);
      if (waits[1].revents != 0 && !pass_on(worker)) {
        connected = false;  // the front was killed, which ends the command like the loss of its terminal
        ::sigqueue(worker, lost, {.sival_int = 0});
        ::kill(-worker, SIGCONT);
      }
    }
  }

  // Ends the relay when the worker has ended.
  void note_changes(int changes, pid_t worker) {
    signalfd_siginfo info{};
    while (::read(changes, &info, sizeof info) > 0) continue;
    int status = 0;
    while (::waitpid(worker, &status, WNOHANG | WUNTRACED) == worker) {
      const bool stopped = WIFSTOPPED(status);
      tell(connection_.get(), stopped ? RelayMessage::Kind::stopped : RelayMessage::Kind::ended, status);
      if (!stopped) ::_exit(0);
    }
  }

  bool pass_on(pid_t worker) {
    FrontMessage message;
    if (receive_message(connection_.get(), {reinterpret_cast<char*>(&message), sizeof message}).size != sizeof message)
      return false;
    switch (message.kind) {
      // By sigqueue(), the worker knows that the signal was sent to it alone, and passes it on to its command.
      case FrontMessage::Kind::signal: ::sigqueue(worker, message.signal, {.sival_int = 0}); break;
      case FrontMessage::Kind::key: ::kill(-worker, message.signal); break;
      case FrontMessage::Kind::resume: ::kill(-worker, SIGCONT); break;
      case FrontMessage::Kind::wake: ::sigqueue(worker, SIGCONT, {.sival_int = 0}); break;
    }
    return true;
  }

  Fd connection_;
  Fd daemon_;
  Caller caller_;
};

// The executor itself: accepts callers, has the daemon admit them, and counts their relays.
class Executor {
 public:
  // Returns the relay of a caller, in a new process, or nullopt when the daemon has ended.
  std::optional<Relay> wait() {
    sigset_t child;
    ::sigemptyset(&child);
    ::sigaddset(&child, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &child, nullptr);
    const Fd changes(::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
    for (;;) {
      pollfd waits[] = {{control_fd, 0, 0}, {listener_fd, POLLIN, 0}, {changes.get(), POLLIN, 0}};
      if (::poll(waits, 3, -1) < 0 && errno != EINTR) return std::nullopt;
      if (waits[0].revents != 0) return std::nullopt;
      if (waits[2].revents != 0) reap(changes.get());
      if (waits[1].revents == 0) continue;
      if (auto relay = accept()) return relay;
    }
  }

 private:
  void reap(int changes) {
    signalfd_siginfo info{};
    while (::read(changes, &info, sizeof info) > 0) continue;
    for (pid_t ended = 0; (ended = ::waitpid(-1, nullptr, WNOHANG)) > 0;) relays_.erase(ended);
  }

  // Returns in the relay with a value.
  std::optional<Relay> accept() {
    Fd connection(::accept4(listener_fd, nullptr, nullptr, SOCK_CLOEXEC));
    Caller caller;
    if (!connection.open() || !read_caller(connection.get(), caller)) return std::nullopt;
    const uid_t uid = caller.credentials.uid;
    if (caller.credentials.pid == ::getppid()) {  // the daemon itself, which bounds its requests
      if (::fork() == 0) answer_daemon(connection.get());
      return std::nullopt;
    }
    const auto of_user = std::ranges::count(relays_, uid, &std::pair<const pid_t, uid_t>::second);
    if (relays_.size() >= limits::observed_commands_max || of_user >= limits::observed_commands_of_user_max) {
      tell(connection.get(), RelayMessage::Kind::refused, 0,
           fmt::format("{} observed commands run already ({} of your user), which is the limit", relays_.size(),
                       of_user));
      return std::nullopt;
    }
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return std::nullopt;
    Fd daemon(ends[0]);
    const Fd theirs(ends[1]);
    if (!admitted(connection.get(), theirs.get())) {
      tell(connection.get(), RelayMessage::Kind::refused, 0, "the daemon refuses the connection");
      return std::nullopt;
    }
    const pid_t relay = ::fork();
    if (relay > 0) relays_.emplace(relay, uid);
    if (relay != 0) return std::nullopt;
    ::close(listener_fd);
    ::close(control_fd);
    return Relay(std::move(connection), std::move(daemon), std::move(caller));
  }

  static bool admitted(int connection, int theirs) {
    const int passed[] = {connection, theirs};
    char answer = 'n';
    return send_message(control_fd, "a", passed) && receive_message(control_fd, {&answer, 1}).size == 1 &&
           answer == 'y';
  }

  std::map<pid_t, uid_t> relays_;
};

}  // namespace

int serve_executor(int (*run)(int argc, char** argv, Execution execution)) {
  for (const int fd : {listener_fd, control_fd}) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  ::prctl(PR_SET_DUMPABLE, 0);
  auto relay = Executor().wait();
  if (!relay) return 0;
  // Never destroyed, since libraries read the environment until the process ends.
  static ExecutorRequest& request = *new ExecutorRequest(relay->run());
  for (std::size_t i = 0; i < request.streams.size(); ++i) ::dup2(request.streams[i].get(), static_cast<int>(i));
  request.streams = {};
  if (::fchdir(request.folder.get()) != 0) {
    fmt::print(stderr, "muniment: the folder cannot be entered: {}\n", std::strerror(errno));
    return 125;
  }
  request.folder.reset();
  environ = request.environment.data();
  keep_temporary_files_in("/tmp");  // not where TMPDIR names, perhaps a file system that another process serves
  return run(static_cast<int>(request.words.size()) - 1, request.words.data(), relay->execution());
}

}  // namespace muniment::cli
