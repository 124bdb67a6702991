// Implements postgres_process.hpp.
#include "store/postgres/postgres_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "store/postgres/postgres_cluster.hpp"

namespace muniment::store {

namespace {

constexpr std::uintmax_t log_bytes_max = 8 << 20;

// Interval at which postmaster.pid is read while a server starts; nothing polls a running server.
constexpr int start_poll_ms = 10;

// Patience for a server that no longer writes: it ends at once or is stuck.
constexpr std::chrono::milliseconds immediate_patience{3'000};

Fd open_pidfd(pid_t pid) {
  const long fd = syscall(SYS_pidfd_open, pid, 0);
  return Fd(static_cast<int>(fd));
}

// Keeps the log of the preceding run and deletes older ones. Between restarts the log holds only warnings.
Fd open_server_log(const PostgresPlace& place) {
  const std::string file = server_log(place.cluster);
  std::error_code error;
  if (std::filesystem::file_size(file, error) > log_bytes_max && !error) {
    std::filesystem::rename(file, file + ".1", error);
  }
  Fd fd(open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (fd.open() && place.user && fchown(fd.get(), place.user->uid, place.user->gid) != 0) return {};
  return fd;
}

bool wait_readable(int fd, std::chrono::milliseconds limit) {
  pollfd wanted{fd, POLLIN, 0};
  const auto until = std::chrono::steady_clock::now() + limit;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    const int got = poll(&wanted, 1, static_cast<int>(std::max<std::int64_t>(0, left.count())));
    if (got > 0) return true;
    if (got == 0 || errno != EINTR) return false;
  }
}

}  // namespace

Result<PostgresProcess> PostgresProcess::launch(const PostgresPlace& place) {
  remove_stale_locks(place.cluster, place.socket_folder, place.port);
  const Fd log = open_server_log(place);
  if (!log.open()) {
    return Error(Errc::system_error, "opening " + server_log(place.cluster) + ": " + errno_text(errno));
  }
  std::vector<std::string> argv = {place.programs + "/postgres", "-D", place.cluster, "-c",
                                   "unix_socket_directories=" + place.socket_folder};
  if (place.without_tcp) argv.insert(argv.end(), {"-c", "listen_addresses="});
  ASSIGN_OR_RETURN(const pid_t pid, spawn({.argv = std::move(argv), .run_as = place.user, .output = log.get()}));
  PostgresProcess process;
  process.pid_ = pid;
  process.child_ = true;
  process.pidfd_ = open_pidfd(pid);
  if (!process.pidfd_.open()) {
    const std::string why = errno_text(errno);
    kill(pid, SIGQUIT);
    process.reap();
    return Error(Errc::system_error, "watching the Postgres that was started: " + why);
  }
  return process;
}

std::optional<PostgresProcess> PostgresProcess::adopt(pid_t pid) {
  PostgresProcess process;
  process.pid_ = pid;
  process.pidfd_ = open_pidfd(pid);
  if (!process.pidfd_.open()) return {};
  return process;
}

PostgresProcess::Readiness PostgresProcess::wait_until_ready(const std::string& cluster, int interrupt,
                                                             std::chrono::seconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < until) {
    const auto server = running_server(cluster);
    if (server && server->pid == pid_ && server->ready) return Readiness::ready;
    pollfd watched[] = {{pidfd_.get(), POLLIN, 0}, {interrupt, POLLIN, 0}};
    if (poll(watched, 2, start_poll_ms) <= 0) continue;
    if (watched[0].revents != 0) return Readiness::ended;
    return Readiness::interrupted;
  }
  return Readiness::late;
}

void PostgresProcess::end(std::chrono::milliseconds patience) {
  // SIGINT is Postgres' fast shutdown, which writes a checkpoint. SIGQUIT is its immediate shutdown, after which the
  // next start recovers.
  for (const int number : {SIGINT, SIGQUIT, SIGKILL}) {
    syscall(SYS_pidfd_send_signal, pidfd_.get(), number, nullptr, 0);
    if (wait_readable(pidfd_.get(), number == SIGINT ? patience : std::min(patience, immediate_patience))) break;
  }
  reap();
}

std::string PostgresProcess::reap() {
  if (!child_) return "an adopted server";
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0) {
    if (errno != EINTR) return "unknown";
  }
  child_ = false;
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  return "exit status " + std::to_string(WEXITSTATUS(status));
}

bool PostgresProcess::program_was_replaced(const std::string& programs) const {
  struct stat running {};
  struct stat present {};
  if (stat(("/proc/" + std::to_string(pid_) + "/exe").c_str(), &running) != 0) return false;
  // During a package upgrade the program may be missing; a restart is not possible yet.
  if (stat((programs + "/postgres").c_str(), &present) != 0) return false;
  return running.st_ino != present.st_ino || running.st_dev != present.st_dev;
}

}  // namespace muniment::store
