#include "cli/executor/front_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string>

namespace muniment::cli {
namespace {

std::string read_proc(pid_t process, std::string_view name) {
  const Fd file(::open(fmt::format("/proc/{}/{}", process, name).c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(16 * 1024, '\0');
  const ssize_t got = file.open() ? ::read(file.get(), text.data(), text.size()) : -1;
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

// Returns the number after "Name:\t" in /proc/PID/status.
std::optional<std::uint64_t> status_value(std::string_view status, std::string_view name, int base) {
  const std::string label = fmt::format("\n{}:\t", name);
  const std::size_t at = status.find(label);
  if (at == std::string_view::npos) return std::nullopt;
  const char* const begin = status.data() + at + label.size();
  std::uint64_t value = 0;
  return std::from_chars(begin, status.data() + status.size(), value, base).ec == std::errc() ? std::optional(value)
                                                                                              : std::nullopt;
}

bool is_same_file(pid_t process, std::string_view name) {
  struct stat theirs {
  }, own{};
  return ::stat(fmt::format("/proc/{}/{}", process, name).c_str(), &theirs) == 0 &&
         ::stat(fmt::format("/proc/self/{}", name).c_str(), &own) == 0 && theirs.st_dev == own.st_dev &&
         theirs.st_ino == own.st_ino;
}

// Joins the control group of a line "NUMBER:CONTROLLERS:PATH\n"; there are no controllers in version 2.
bool join(std::string_view line) {
  line.remove_prefix(line.find(':') + 1);
  std::string_view controllers = line.substr(0, line.find(':'));
  const std::string_view path = line.substr(controllers.size() + 1, line.size() - controllers.size() - 2);
  if (controllers.starts_with("name=")) controllers.remove_prefix(controllers.find('=') + 1);
  for (const std::string_view tree : {controllers, std::string_view("unified")}) {
    const Fd group(::open(fmt::format("/sys/fs/cgroup/{}{}/cgroup.procs", tree, path).c_str(), O_WRONLY | O_CLOEXEC));
    if (group.open()) return ::write(group.get(), "0", 1) == 1;
  }
  return false;
}

constexpr int so_peerpidfd = 77;  // SO_PEERPIDFD of Linux 6.5

}  // namespace

Fd process_of_peer(int connection, pid_t peer) {
  int process = -1;
  socklen_t length = sizeof process;
  if (::getsockopt(connection, SOL_SOCKET, so_peerpidfd, &process, &length) == 0) return Fd(process);
  return errno == ENOPROTOOPT ? Fd(static_cast<int>(::syscall(SYS_pidfd_open, peer, 0))) : Fd();
}

bool is_alive(const Fd& process) {
  pollfd ended{process.get(), POLLIN, 0};
  return process.open() && ::poll(&ended, 1, 0) == 0;
}

std::optional<FrontState> front_state(pid_t front) {
  const std::string status = read_proc(front, "status");
  const auto umask = status_value(status, "Umask", 8);
  const auto ignored = status_value(status, "SigIgn", 16);
  const auto blocked = status_value(status, "SigBlk", 16);
  if (!umask || !ignored || !blocked) return std::nullopt;
  FrontState state;
  state.umask = static_cast<mode_t>(*umask);
  state.ignored = *ignored;
  state.blocked = *blocked;
  for (std::size_t resource = 0; resource < state.limits.size(); ++resource) {
    if (::prlimit(front, static_cast<__rlimit_resource>(resource), nullptr, &state.limits[resource]) != 0)
      return std::nullopt;
  }
  errno = 0;
  state.nice = ::getpriority(PRIO_PROCESS, static_cast<id_t>(front));
  if (errno != 0 || ::sched_getaffinity(front, sizeof state.processors, &state.processors) != 0) return std::nullopt;
  return state;
}

void inherit(const FrontState& state) {
  for (std::size_t i = 0; i < state.limits.size(); ++i) {
    const auto resource = static_cast<__rlimit_resource>(i);
    rlimit limit = state.limits[i], own{};
    if (::setrlimit(resource, &limit) == 0 || ::getrlimit(resource, &own) != 0) continue;
    limit.rlim_max = own.rlim_max;  // that of the caller is higher, which only root may set
    limit.rlim_cur = std::min(limit.rlim_cur, own.rlim_max);
    ::setrlimit(resource, &limit);
  }
  if (state.nice != 0) ::setpriority(PRIO_PROCESS, 0, state.nice);
  ::sched_setaffinity(0, sizeof state.processors, &state.processors);
  ::umask(state.umask);
  sigset_t blocked;
  ::sigemptyset(&blocked);
  for (int number = 1; number < 32; ++number) {
    // A worker must receive SIGCHLD to see the end of its command.
    const bool ignored = number != SIGCHLD && (state.ignored >> (number - 1) & 1) != 0;
    ::signal(number, ignored ? SIG_IGN : SIG_DFL);
    if ((state.blocked >> (number - 1) & 1) != 0) ::sigaddset(&blocked, number);
  }
  ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
}

bool in_foreground(pid_t front) {
  const std::string stat = read_proc(front, "stat");
  // After the name in parentheses: state, parent, process group, session, terminal, its foreground group.
  std::size_t at = stat.rfind(')');
  if (at == std::string::npos) return false;
  std::string_view rest = std::string_view(stat).substr(at + 1);
  std::string_view fields[7];
  for (std::string_view& field : fields) {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    field = rest.substr(0, rest.find(' '));
    rest.remove_prefix(field.size());
  }
  return !fields[2].empty() && fields[2] == fields[5];
}

std::string_view confinement_of(pid_t front) {
  for (const char* name :
       {"ns/user", "ns/pid", "ns/mnt", "ns/net", "ns/ipc", "ns/uts", "ns/cgroup", "ns/time", "root"}) {
    if (!is_same_file(front, name))
      return "your process is in another namespace or root folder (a container or a sandbox)";
  }
  const std::string theirs = read_proc(front, "status");
  const std::string own = read_proc(::getpid(), "status");
  const std::string first = read_proc(1, "status");
  // Two filters cannot be compared. Only those of process 1, as in a container, are known to be in force for both.
  for (const char* name : {"NoNewPrivs", "Seccomp", "Seccomp_filters"}) {
    const auto value = status_value(theirs, name, 10);
    if (value != status_value(own, name, 10) || value != status_value(first, name, 10))
      return "your process or the daemon is confined (seccomp, no_new_privs)";
  }
  // Only a root that has given up capabilities would gain them again; any other user's worker has none.
  const auto uid = status_value(theirs, "Uid", 10);
  for (const char* name : {"CapEff", "CapBnd"}) {
    const std::uint64_t missing =
        status_value(own, name, 16).value_or(~0ULL) & ~status_value(theirs, name, 16).value_or(0);
    if (missing != 0 && (uid == 0U || name == std::string_view("CapBnd")))
      return "your process has fewer capabilities than the daemon";
  }
  if (read_proc(front, "attr/current") != read_proc(::getpid(), "attr/current"))
    return "your process has another security label";
  return "";
}

bool join_group_of(pid_t front) {
  const std::string theirs = read_proc(front, "cgroup");
  const std::string own = read_proc(::getpid(), "cgroup");
  for (std::string_view rest = theirs; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n') + 1);
    if (line.empty() || (own.find(line) == std::string::npos && !join(line))) return false;
    rest.remove_prefix(line.size());
  }
  return !theirs.empty();
}

}  // namespace muniment::cli
