// Starts children: fork, then only async-signal-safe calls until exec, because other threads of the daemon may have
// held locks at the fork.
#include "base/process/spawn.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/log.hpp"
#include "base/process/sandbox.hpp"

namespace muniment {

namespace {

std::string reason() { return std::generic_category().message(errno); }

// Everything that the child needs, allocated before the fork: after it, no memory may be allocated.
struct Prepared {
  std::vector<char*> argv;
  std::vector<char*> environment;
  std::vector<int> descriptors;  // descriptors that become 0, 1, 2, 3 …
  pid_t parent = 0;
  int report = -1;  // receives an errno if exec fails
};

[[noreturn]] void report_and_exit(int report) {
  const int error = errno;
  [[maybe_unused]] const ssize_t ignored = ::write(report, &error, sizeof error);
  ::_exit(127);
}

[[noreturn]] void become(Prepared& prepared) {
  ::setsid();  // Ctrl-C in the daemon's terminal is handled by the daemon alone
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int number = 1; number < 32; ++number) ::signal(number, SIG_DFL);
  ::signal(SIGPIPE, SIG_IGN);
  if (!end_with_parent(prepared.parent)) ::_exit(127);
  // First moves descriptors above their targets, then down to them.
  const int count = static_cast<int>(prepared.descriptors.size());
  prepared.report = ::fcntl(prepared.report, F_DUPFD_CLOEXEC, count + 1);
  for (int& fd : prepared.descriptors) {
    fd = ::fcntl(fd, F_DUPFD_CLOEXEC, count + 1);
    if (fd < 0) report_and_exit(prepared.report);
  }
  for (int place = 0; place < count; ++place) {
    if (::dup2(prepared.descriptors[static_cast<std::size_t>(place)], place) < 0) report_and_exit(prepared.report);
  }
  ::syscall(SYS_close_range, static_cast<unsigned>(count), ~0U, 1U << 2);  // CLOSE_RANGE_CLOEXEC
  ::umask(077);
  if (::chdir("/") != 0) report_and_exit(prepared.report);
  ::execve(prepared.argv[0], prepared.argv.data(), prepared.environment.data());
  report_and_exit(prepared.report);
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

// Passes no secrets of the daemon's environment, only what controls failpoints and sanitizers.
std::vector<std::string> clean_environment() {
  std::vector<std::string> kept = {"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "TZ=UTC", "HOME=/",
                                   "MUNIMENT_LOG=" + log_settings()};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (name.starts_with("MUNIMENT_FAILPOINT") || name.ends_with("SAN_OPTIONS")) kept.emplace_back(text);
  }
  return kept;
}

}  // namespace

Child::~Child() {
  if (pid_ < 0) return;
  kill();
  wait();
}

Child::Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)), pidfd_(std::move(other.pidfd_)) {}

Child& Child::operator=(Child&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(pidfd_, other.pidfd_);
  return *this;
}

void Child::kill() const {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
}

Child::Ending Child::wait() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  pidfd_.reset();
  if (WIFEXITED(status)) return {0, "exit status " + std::to_string(WEXITSTATUS(status))};
  const int signal = WTERMSIG(status);
  return {signal, "signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")"};
}

bool Child::wait_until(Deadline deadline) const {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    pollfd ended{pidfd_.get(), POLLIN, 0};
    const int ready = ::poll(&ended, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    if (left <= 0) return false;
  }
}

Result<Child> spawn(const ChildCommand& command) {
  std::vector<std::string> argv = command.argv;
  std::vector<std::string> environment = clean_environment();
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  int ends[2];
  if (!null.open() || ::pipe2(ends, O_CLOEXEC) != 0) return Error(Errc::unavailable, "starting a child: " + reason());
  const Fd report(ends[0]);
  Fd report_in(ends[1]);
  Prepared prepared{pointers(argv),
                    pointers(environment),
                    {null.get(), null.get(), command.keeps_stderr ? STDERR_FILENO : null.get()},
                    ::getpid(),
                    report_in.get()};
  prepared.descriptors.insert(prepared.descriptors.end(), command.handed_over.begin(), command.handed_over.end());
  Child child;
  child.pid_ = ::fork();
  if (child.pid_ == 0) become(prepared);
  if (child.pid_ < 0) return Error(Errc::unavailable, "starting a child: " + reason());
  report_in.reset();
  int error = 0;
  ssize_t got;
  do {
    got = ::read(report.get(), &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  child.pidfd_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, child.pid_, 0)));
  if (got == static_cast<ssize_t>(sizeof error)) errno = error;
  if (got == static_cast<ssize_t>(sizeof error) || !child.pidfd_.open()) {
    return Error(Errc::unavailable, "starting " + argv[0] + ": " + reason());
  }
  return child;
}

}  // namespace muniment
