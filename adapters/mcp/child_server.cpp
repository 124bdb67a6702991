#include "adapters/mcp/child_server.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace muniment::cli {
namespace {

Error no_way(std::string_view what) {
  return Error(Errc::unavailable, fmt::format("{}: {}", what, std::strerror(errno)));
}

struct Pipe {
  Fd read_end;
  Fd write_end;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return no_way("cannot create a pipe");
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

// Runs in the child between fork and exec. Writes the reason to `failure` if exec fails.
[[noreturn]] void become_server(char* const* arguments, int input, int output, int failure) {
  ::dup2(input, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::execvp(arguments[0], arguments);
  const int why = errno;
  if (::write(failure, &why, sizeof why) < 0) ::_exit(126);
  ::_exit(127);
}

}  // namespace

Result<ChildServer> ChildServer::start(const std::vector<std::string>& arguments,
                                       std::optional<NotStarted>& not_started) {
  ASSIGN_OR_RETURN(Pipe input, make_pipe());
  ASSIGN_OR_RETURN(Pipe output, make_pipe());
  ASSIGN_OR_RETURN(Pipe failure, make_pipe());
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  ChildServer server;
  server.pid_ = ::fork();
  if (server.pid_ < 0) return no_way("cannot start a process");
  if (server.pid_ == 0)
    become_server(pointers.data(), input.read_end.get(), output.write_end.get(), failure.write_end.get());
  failure.write_end.reset();
  int why = 0;
  ssize_t got = 0;
  do got = ::read(failure.read_end.get(), &why, sizeof why);
  while (got < 0 && errno == EINTR);
  if (got == sizeof why) {
    ::waitpid(server.pid_, nullptr, 0);
    not_started = NotStarted{why == ENOENT ? 127 : 126, fmt::format("{}: {}", arguments.front(), std::strerror(why))};
    return server;
  }
  server.process_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, server.pid_, 0)));
  if (!server.process_.open()) return no_way("cannot watch the server");
  server.input_ = std::move(input.write_end);
  server.output_ = std::move(output.read_end);
  return server;
}

void ChildServer::signal(int number) const {
  if (!exit_) ::kill(pid_, number);
}

std::optional<ServerExit> ChildServer::ended() {
  int status = 0;
  if (!exit_ && ::waitpid(pid_, &status, WNOHANG) == pid_) {
    exit_.emplace();
    if (WIFSIGNALED(status)) {
      exit_->signal = WTERMSIG(status);
    } else {
      exit_->code = WEXITSTATUS(status);
    }
  }
  return exit_;
}

}  // namespace muniment::cli
