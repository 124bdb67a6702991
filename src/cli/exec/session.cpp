// The monitor between muniment exec and a command on a terminal. It uses only calls that are safe after fork().
#include "cli/exec/session.hpp"

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace muniment::cli {
namespace {

void report(pid_t command, int status) {
  const SessionReport message{command, status};
  while (::write(STDIN_FILENO, &message, sizeof message) < 0 && errno == EINTR) continue;
}

// Reports each stop of the command and then its end. SIGHUP ends it when the terminal closes.
[[noreturn]] void monitor(pid_t command, int reports) {
  for (const int number : {SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE})
    ::signal(number, SIG_IGN);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(reports, STDIN_FILENO);
  ::close_range(STDIN_FILENO + 1, ~0U, 0);
  report(command, session_started);
  for (;;) {
    int status = 0;
    const pid_t seen = ::waitpid(command, &status, WUNTRACED | WCONTINUED);
    if (seen < 0 && errno == EINTR) continue;
    if (seen < 0) ::_exit(1);
    report(command, status);
    if (WIFEXITED(status) || WIFSIGNALED(status)) ::_exit(0);
  }
}

}  // namespace

bool enter_session(int terminal, int reports) {
  ::setsid();
  ::ioctl(terminal, TIOCSCTTY, 0);
  const pid_t command = ::fork();
  if (command < 0) return false;
  if (command > 0) monitor(command, reports);
  ::setpgid(0, 0);
  // Blocks SIGTTOU, since this process is in the background of the terminal until the call.
  sigset_t background;
  ::sigemptyset(&background);
  ::sigaddset(&background, SIGTTOU);
  ::sigprocmask(SIG_BLOCK, &background, nullptr);
  ::tcsetpgrp(terminal, ::getpid());
  return true;
}

}  // namespace muniment::cli
