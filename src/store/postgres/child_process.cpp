// Uses fork, followed only by async-signal-safe calls until exec, because a different thread of the daemon may have
// held a lock at the fork.
#include "store/postgres/child_process.hpp"

#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/process/sandbox.hpp"

namespace muniment::store {

namespace {

constexpr std::size_t kept_output_bytes = 64 * 1024;

// Data for the child, created before the fork, because the child must not allocate.
struct Prepared {
  std::vector<char*> argv;
  std::vector<char*> environment;
  const Command& command;
  pid_t parent;
  int null;
  int report;
};

[[noreturn]] void report_and_exit(int report) {
  const int error = errno;
  [[maybe_unused]] const ssize_t ignored = write(report, &error, sizeof error);
  _exit(127);
}

bool set_limits(const Command& command) {
  const auto seconds = static_cast<rlim_t>(command.cpu_seconds_max);
  const rlimit cpu{seconds, seconds}, core{0, 0};
  if (command.cpu_seconds_max > 0 && setrlimit(RLIMIT_CPU, &cpu) != 0) return false;
  return command.core_dumps || setrlimit(RLIMIT_CORE, &core) == 0;
}

[[noreturn]] void become(const Prepared& prepared) {
  const Command& command = prepared.command;
  // A separate session keeps Ctrl-C in the daemon's terminal from reaching the database.
  setsid();
  if (command.ends_with_thread && !end_with_parent(prepared.parent)) _exit(127);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int number = 1; number < 32; ++number) signal(number, SIG_DFL);
  const int output = command.output >= 0 ? command.output : prepared.null;
  const bool ready = dup2(command.input >= 0 ? command.input : prepared.null, 0) >= 0 && dup2(output, 1) >= 0 &&
                     dup2(command.errors >= 0 ? command.errors : output, 2) >= 0 && set_limits(command);
  if (!ready) report_and_exit(prepared.report);
  close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  if (const auto& user = command.run_as) {
    if (setgroups(1, &user->gid) != 0 || setresgid(user->gid, user->gid, user->gid) != 0 ||
        setresuid(user->uid, user->uid, user->uid) != 0) {
      report_and_exit(prepared.report);
    }
  }
  umask(077);
  // All paths are absolute, so that any working folder is suitable; "/" cannot be unmounted and is accessible to the
  // other user.
  if (chdir("/") != 0) report_and_exit(prepared.report);
  execve(prepared.argv[0], prepared.argv.data(), prepared.environment.data());
  report_and_exit(prepared.report);
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

std::string errno_text(int error) { return std::generic_category().message(error); }

int exit_status_of(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

Result<pid_t> spawn(const Command& command) {
  std::vector<std::string> argv = command.argv;
  std::vector<std::string> environment = command.environment;
  if (environment.empty()) {
    environment = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "TZ=UTC", "HOME=/"};
  }
  const Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  int report_ends[2];
  if (!null.open() || pipe2(report_ends, O_CLOEXEC) != 0) {
    return Error(Errc::system_error, "starting " + argv[0] + ": " + errno_text(errno));
  }
  Fd report_out(report_ends[0]);
  Fd report_in(report_ends[1]);
  const Prepared prepared = {pointers(argv), pointers(environment), command, getpid(), null.get(), report_in.get()};
  const pid_t pid = fork();
  if (pid == 0) become(prepared);
  if (pid < 0) return Error(Errc::system_error, "fork: " + errno_text(errno));
  report_in = Fd();
  int error = 0;
  ssize_t got;
  do {
    got = read(report_out.get(), &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(sizeof error)) {
    waitpid(pid, nullptr, 0);
    return Error(Errc::system_error, "starting " + argv[0] + ": " + errno_text(error));
  }
  return pid;
}

Result<Finished> run_to_end(Command command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return Error(Errc::system_error, "pipe: " + errno_text(errno));
  }
  const Fd reading(ends[0]);
  Fd writing(ends[1]);
  command.output = writing.get();
  ASSIGN_OR_RETURN(const pid_t pid, spawn(command));
  writing = Fd();
  Finished finished;
  char buffer[4096];
  for (;;) {
    const ssize_t got = read(reading.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    finished.output.append(buffer, static_cast<std::size_t>(got));
    if (finished.output.size() > 2 * kept_output_bytes) {
      finished.output.erase(0, finished.output.size() - kept_output_bytes);
    }
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  finished.exit_status = exit_status_of(status);
  return finished;
}

}  // namespace muniment::store
