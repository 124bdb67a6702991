// Manages the process of the command, its pipes or terminal, its signals and its stops.
#include "cli/exec/child_command.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "cli/exec/session.hpp"
#include "cli/executor/front_process.hpp"
#include "client/connect/upload.hpp"

namespace muniment::cli {
namespace {

// Time to wait for more output after the command has ended. Processes that it left behind may hold its pipes open
// forever.
constexpr int drain_ms = 200;

// Time in which the whole job is continued after a stop, if the shell has already resumed this process.
constexpr int resumed_ms = 20;

constexpr int handed_on[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

Error no_way(std::string_view what) {
  return Error(Errc::unavailable, fmt::format("{}: {}", what, std::strerror(errno)));
}

void close_one(int& descriptor) {
  if (descriptor >= 0) ::close(descriptor);
  descriptor = -1;
}

bool write_fully(int descriptor, const char* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(descriptor, bytes, size);
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) {
      pollfd wait{descriptor, POLLOUT, 0};
      ::poll(&wait, 1, -1);
      continue;
    }
    if (written < 0) return false;
    bytes += written;
    size -= static_cast<std::size_t>(written);
  }
  return true;
}

sigset_t watched_signals() {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int number : handed_on) sigaddset(&watched, number);
  sigaddset(&watched, SIGCHLD);
  sigaddset(&watched, SIGCONT);
  sigaddset(&watched, SIGWINCH);
  return watched;
}

// True if a folder of PATH has a file of this name, executable or not.
bool is_in_path(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  for (bool more = path != nullptr; more;) {
    const std::size_t end = rest.find(':');
    const std::string folder(rest.substr(0, end));
    struct stat about {};
    if (::stat(((folder.empty() ? "." : folder) + "/" + name).c_str(), &about) == 0 && S_ISREG(about.st_mode))
      return true;
    more = end != std::string_view::npos;
    if (more) rest.remove_prefix(end + 1);
  }
  return false;
}

// One of the command's two outputs: its source, its destination and the file that keeps a copy.
struct Stream {
  int source = -1;
  int target = -1;
  Fd file;
};

class Runner {
 public:
  Runner(const std::vector<std::string>& arguments, pid_t front) : arguments_(arguments), front_(front) {}

  ~Runner() {
    restore_terminal();
    for (int* descriptor : {&out_.source, &err_.source, &pty_slave_, &terminal_, &signals_, &out_write_, &err_write_,
                            &failure_read_, &failure_write_, &reports_read_, &reports_write_}) {
      close_one(*descriptor);
    }
    if (signals_blocked_) ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
  }

  Result<CommandOutcome> run() {
    RETURN_IF_ERROR(prepare());
    RETURN_IF_ERROR(start());
    if (const auto failure = start_failure()) return unstarted(*failure);
    if (pty_) enter_raw();
    pump();
    restore_terminal();
    CommandOutcome outcome;
    if (WIFSIGNALED(status_)) {
      outcome.signal = WTERMSIG(status_);
    } else {
      outcome.exit_code = WEXITSTATUS(status_);
    }
    outcome.duration_us = duration_us_;
    outcome.output_lost = output_lost_;
    signals_blocked_ = false;
    outcome.held = HeldSignals(mask_before_);
    outcome.stdout_file = std::move(out_.file);
    outcome.stderr_file = std::move(err_.file);
    return outcome;
  }

 private:
  Status prepare() {
    pty_ = ::isatty(STDOUT_FILENO) != 0;
    err_apart_ = !pty_ || ::isatty(STDERR_FILENO) == 0;
    out_.target = STDOUT_FILENO;
    err_.target = STDERR_FILENO;
    ASSIGN_OR_RETURN(out_.file, temporary_file());
    if (err_apart_) {
      ASSIGN_OR_RETURN(err_.file, temporary_file());
      RETURN_IF_ERROR(make_pipe(err_.source, err_write_));
    }
    RETURN_IF_ERROR(pty_ ? make_terminal() : make_pipe(out_.source, out_write_));
    RETURN_IF_ERROR(make_pipe(failure_read_, failure_write_));
    if (pty_) RETURN_IF_ERROR(make_pipe(reports_read_, reports_write_));
    pipe_before_ = ::signal(SIGPIPE, SIG_IGN);  // write() reports a closed pipe instead
    const sigset_t watched = watched_signals();
    if (::sigprocmask(SIG_BLOCK, &watched, &mask_before_) != 0) return no_way("cannot block signals");
    signals_blocked_ = true;
    signals_ = ::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    return signals_ < 0 ? Status(no_way("cannot watch for signals")) : success();
  }

  static Status make_pipe(int& read_end, int& write_end) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return no_way("cannot create a pipe");
    read_end = ends[0];
    write_end = ends[1];
    return success();
  }

  Status make_terminal() {
    winsize size{};
    termios settings{};
    const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && ::tcgetattr(STDOUT_FILENO, &settings) == 0;
    if (::openpty(&out_.source, &pty_slave_, nullptr, known ? &settings : nullptr, known ? &size : nullptr) != 0) {
      return no_way("cannot create a terminal");
    }
    ::fcntl(out_.source, F_SETFD, FD_CLOEXEC);
    ::fcntl(pty_slave_, F_SETFD, FD_CLOEXEC);
    return success();
  }

  Status start() {
    std::vector<char*> pointers;
    for (const std::string& argument : arguments_) pointers.push_back(const_cast<char*>(argument.c_str()));
    pointers.push_back(nullptr);
    started_at_ = std::chrono::steady_clock::now();
    pid_ = ::fork();
    if (pid_ < 0) return no_way("cannot start a process");
    if (pid_ == 0) become_command(pointers.data());
    close_one(pty_slave_);
    close_one(out_write_);
    close_one(err_write_);
    close_one(failure_write_);
    close_one(reports_write_);
    if (pty_) read_report();
    return success();
  }

  // Runs in the child, between fork and exec.
  [[noreturn]] void become_command(char* const* arguments) {
    if (pty_) {
      if (!enter_session(pty_slave_, reports_write_)) exit_unstarted();
      if (::isatty(STDIN_FILENO) != 0) ::dup2(pty_slave_, STDIN_FILENO);
      ::dup2(pty_slave_, STDOUT_FILENO);
      if (!err_apart_) ::dup2(pty_slave_, STDERR_FILENO);
    } else {
      ::dup2(out_write_, STDOUT_FILENO);
    }
    if (err_apart_) ::dup2(err_write_, STDERR_FILENO);
    ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
    ::signal(SIGPIPE, pipe_before_);
    ::execvp(arguments[0], arguments);
    exit_unstarted();
  }

  [[noreturn]] void exit_unstarted() {
    const int failure = errno;
    if (::write(failure_write_, &failure, sizeof failure) < 0) ::_exit(126);
    ::_exit(127);
  }

  // Returns the reason why exec failed, which the pipe carries; exec closes the pipe otherwise.
  std::optional<int> start_failure() {
    int failure = 0;
    ssize_t got = 0;
    do got = ::read(failure_read_, &failure, sizeof failure);
    while (got < 0 && errno == EINTR);
    if (got != sizeof failure) return std::nullopt;
    return failure;
  }

  CommandOutcome unstarted(int failure) {
    ::waitpid(pid_, &status_, 0);
    const std::string& name = arguments_.front();
    const bool named = name.find('/') == std::string::npos;  // the name is looked up in PATH
    // execvp also fails with EACCES for an unreadable folder of PATH.
    if (failure == EACCES && named && !is_in_path(name)) failure = ENOENT;
    fmt::print(stderr, "muniment: {}: {}\n", name,
               named && failure == ENOENT ? "command not found" : std::strerror(failure));
    CommandOutcome outcome;
    outcome.not_found = true;
    outcome.exit_code = failure == ENOENT ? 127 : 126;
    return outcome;
  }

  // Passes the keys of the terminal to the command, which only the foreground job may do.
  void enter_raw() {
    termios settings{};
    forward_input_ = false;
    const bool foreground = front_ == 0 ? ::tcgetpgrp(STDIN_FILENO) == ::getpgrp() : in_foreground(front_);
    if (terminal_before_ || !foreground) return;
    if (::tcgetattr(STDIN_FILENO, &settings) != 0) return;
    terminal_before_ = settings;
    ::cfmakeraw(&settings);
    ::tcsetattr(STDIN_FILENO, TCSADRAIN, &settings);
    forward_input_ = true;
  }

  void restore_terminal() {
    if (terminal_before_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &*terminal_before_);
    terminal_before_.reset();
    forward_input_ = false;
  }

  // Copies until the command has ended and its output has ended or pauses for drain_ms.
  void pump() {
    while (!ended_ || out_.source >= 0 || err_.source >= 0) {
      pollfd waits[] = {{signals_, POLLIN, 0},
                        {out_.source, POLLIN, 0},
                        {err_.source, POLLIN, 0},
                        {forward_input_ ? STDIN_FILENO : -1, POLLIN, 0},
                        {reports_read_, POLLIN, 0}};
      const int ready = ::poll(waits, std::size(waits), ended_ ? drain_ms : -1);
      if (ready < 0 && errno == EINTR) continue;
      if (ready == 0) return;
      if (waits[1].revents != 0) copy(out_);
      if (waits[2].revents != 0) copy(err_);
      if (waits[3].revents != 0) forward_input();
      if (waits[4].revents != 0) read_report();
      if (waits[0].revents != 0) take_signals();
    }
  }

  // Writes the recorded copy first, so that a closed output loses no record.
  void copy(Stream& stream) {
    char piece[32 * 1024];
    const ssize_t got = ::read(stream.source, piece, sizeof piece);
    if (got < 0 && errno == EINTR) return;
    if (got <= 0) return end_of(stream);  // a terminal ends with EIO
    const auto size = static_cast<std::size_t>(got);
    if (!output_lost_ && !write_fully(stream.file.get(), piece, size)) {
      output_lost_ = true;
      fmt::print(stderr, "muniment: the rest of the output cannot be recorded: {}\n", std::strerror(errno));
    }
    // The reader has closed the pipe, so the command gets the signal that it would get without this process.
    if (!write_fully(stream.target, piece, size)) {
      if (pty_) ::kill(target(), SIGHUP);
      end_of(stream);
    }
  }

  // A closed terminal would hang up the monitor before its last report, so it stays open until the destructor.
  void end_of(Stream& stream) {
    if (pty_ && &stream == &out_)
      terminal_ = std::exchange(stream.source, -1);
    else
      close_one(stream.source);
  }

  void forward_input() {
    char piece[4096];
    const ssize_t got = ::read(STDIN_FILENO, piece, sizeof piece);
    if (got <= 0 || !write_fully(out_.source, piece, static_cast<std::size_t>(got))) forward_input_ = false;
  }

  void take_signals() {
    signalfd_siginfo info{};
    while (::read(signals_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      const int number = static_cast<int>(info.ssi_signo);
      if (number == SIGCHLD) {
        if (!pty_) wait_for_change();
      } else if (number == SIGCONT) {
        // Sent to this process alone, it ends only this process's stop: no shell can continue the command.
        if (info.ssi_code != SI_QUEUE || (pty_ && stopped_by_key_)) resume();
      } else if (number == SIGWINCH) {
        winsize size{};
        if (pty_ && out_.source >= 0 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
          ::ioctl(out_.source, TIOCSWINSZ, &size);
      } else if (!ended_ && (pty_ || !sent_to_job(info))) {
        ::kill(target(), number);
        // The signal stays pending while the command is stopped, and its stop may not have been noted yet.
        if (number != SIGUSR1 && number != SIGUSR2) ::kill(target(), SIGCONT);
      }
    }
  }

  // A key's signal is sent to every process of the job, also to a command that belongs to it: by the kernel, or in its
  // place by the relay of the executor.
  bool sent_to_job(const signalfd_siginfo& info) const {
    return front_ == 0 ? info.ssi_code == SI_KERNEL
                       : info.ssi_code == SI_USER && static_cast<pid_t>(info.ssi_pid) == ::getppid();
  }

  // Target of forwarded signals; on a terminal, the process group of the command.
  pid_t target() const { return pty_ ? -command_ : pid_; }

  // Without a terminal the command is a child of this process.
  void wait_for_change() {
    int status = 0;
    while (!ended_ && ::waitpid(pid_, &status, WNOHANG | WUNTRACED | WCONTINUED) == pid_) note_change(status);
  }

  // On a terminal the command is a child of the monitor. If the monitor is killed, the terminal closes and the command
  // ends.
  void read_report() {
    SessionReport report;
    ssize_t got = 0;
    do got = ::read(reports_read_, &report, sizeof report);
    while (got < 0 && errno == EINTR);
    if (got == sizeof report) {
      command_ = report.command;
      if (report.status != session_started) note_change(report.status);
      return;
    }
    close_one(reports_read_);
    int status = 0;
    if (command_ > 0 && ::waitpid(pid_, &status, 0) == pid_ && !ended_) note_change(status);
  }

  void note_change(int status) {
    if (WIFSTOPPED(status)) {
      stop_too(WSTOPSIG(status));
    } else if (!WIFCONTINUED(status)) {
      status_ = status;
      note_end();
    }
  }

  // The command has stopped. This process stops too, so that the shell takes the terminal back and can continue both.
  // Without such a shell the kernel ignores the signal, and a key stops nothing.
  void stop_too(int number) {
    if (!pty_ && is_resumed()) return;
    stopped_by_key_ = number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
    restore_terminal();
    ::raise(SIGTSTP);
    sigset_t pending;
    ::sigpending(&pending);
    if (::sigismember(&pending, SIGCONT) == 0 && pty_ && stopped_by_key_) resume();
  }

  // Without its own terminal, the command is stopped and continued together with this process.
  bool is_resumed() {
    pollfd wait{signals_, POLLIN, 0};
    ::poll(&wait, 1, resumed_ms);
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG | WCONTINUED) != pid_) return false;
    note_change(status);
    return true;
  }

  void resume() {
    if (ended_) return;
    if (pty_) enter_raw();
    ::kill(target(), SIGCONT);
  }

  void note_end() {
    ended_ = true;
    duration_us_ =
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - started_at_).count();
  }

  const std::vector<std::string>& arguments_;
  const pid_t front_;
  bool pty_ = false;
  bool err_apart_ = true;
  Stream out_;
  Stream err_;
  int pty_slave_ = -1;
  int terminal_ = -1;  // this end of the terminal, kept open after the end of its output
  int out_write_ = -1;
  int err_write_ = -1;
  int failure_read_ = -1;
  int failure_write_ = -1;
  int reports_read_ = -1;
  int reports_write_ = -1;
  int signals_ = -1;
  sigset_t mask_before_{};
  sighandler_t pipe_before_ = SIG_DFL;
  bool signals_blocked_ = false;
  std::optional<termios> terminal_before_;
  bool forward_input_ = false;
  bool stopped_by_key_ = false;
  pid_t pid_ = -1;      // child process: the command or, on a terminal, the monitor
  pid_t command_ = -1;  // on a terminal: the command
  int status_ = 0;
  bool ended_ = false;
  std::chrono::steady_clock::time_point started_at_;
  std::int64_t duration_us_ = 0;
  bool output_lost_ = false;
};

}  // namespace

HeldSignals::~HeldSignals() {
  if (!holding_) return;
  const sigset_t watched = watched_signals();
  const timespec at_once{};
  while (::sigtimedwait(&watched, nullptr, &at_once) > 0) continue;
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

HeldSignals::HeldSignals(HeldSignals&& other) noexcept
    : before_(other.before_), holding_(std::exchange(other.holding_, false)) {}

HeldSignals& HeldSignals::operator=(HeldSignals&& other) noexcept {
  std::swap(before_, other.before_);
  std::swap(holding_, other.holding_);
  return *this;
}

Result<CommandOutcome> run_command(const std::vector<std::string>& arguments, pid_t front) {
  return Runner(arguments, front).run();
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? std::to_string(signal) : std::string("SIG") + name;
}

}  // namespace muniment::cli
