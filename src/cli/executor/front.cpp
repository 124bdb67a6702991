// The front: hands its command line to the executor, and then only passes signals and stops.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/limits.hpp"
#include "base/process/executor_socket.hpp"
#include "base/process/passed_descriptors.hpp"
#include "base/text.hpp"
#include "cli/executor/executor.hpp"
#include "cli/executor/request.hpp"
#include "client/connect/session.hpp"

namespace muniment::cli {
namespace {

constexpr int passed_on[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT};

bool send(int connection, FrontMessage::Kind kind, int signal = 0) {
  const FrontMessage message{kind, signal};
  return send_message(connection, {reinterpret_cast<const char*>(&message), sizeof message});
}

bool receive(int connection, RelayMessage& message) {
  return receive_message(connection, {reinterpret_cast<char*>(&message), sizeof message}).size == sizeof message;
}

class Front {
 public:
  explicit Front(Fd connection) : connection_(std::move(connection)) {
    sigset_t watched;
    ::sigemptyset(&watched);
    for (const int number : passed_on) ::sigaddset(&watched, number);
    ::sigprocmask(SIG_BLOCK, &watched, nullptr);
    signals_ = Fd(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  }

  // Returns the status of the worker; nullopt if the executor ended before it.
  std::optional<int> wait() {
    for (;;) {
      pollfd waits[] = {{connection_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}};
      if (::poll(waits, 2, -1) < 0 && errno != EINTR) return std::nullopt;
      if (waits[1].revents != 0) pass_signals();
      if (waits[0].revents == 0) continue;
      RelayMessage message;
      if (!receive(connection_.get(), message)) return std::nullopt;
      if (message.kind == RelayMessage::Kind::ended) return message.status;
      if (message.kind == RelayMessage::Kind::stopped) stop();
    }
  }

 private:
  void pass_signals() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      const int number = static_cast<int>(info.ssi_signo);
      if (number == SIGCONT) {
        send(connection_.get(), FrontMessage::Kind::resume);
      } else {
        const bool to_job = info.ssi_code == SI_KERNEL || number == SIGTSTP;
        send(connection_.get(), to_job ? FrontMessage::Kind::key : FrontMessage::Kind::signal, number);
      }
    }
  }

  // The worker has stopped. This process stops too, so that the shell takes the terminal back. The kernel ignores the
  // signal if no shell could continue this process; then the worker must go on without it.
  void stop() {
    sigset_t stopping, pending;
    ::sigemptyset(&stopping);
    ::sigaddset(&stopping, SIGTSTP);
    ::raise(SIGTSTP);
    ::sigprocmask(SIG_UNBLOCK, &stopping, nullptr);
    ::sigprocmask(SIG_BLOCK, &stopping, nullptr);
    ::sigpending(&pending);
    if (::sigismember(&pending, SIGCONT) == 0) send(connection_.get(), FrontMessage::Kind::wake);
  }

  const Fd connection_;
  Fd signals_;
};

Result<Fd> begin(Session& session, std::string& refusal) {
  ASSIGN_OR_RETURN(Client* const client, session.client());
  const auto place = client->call("command.executor", "{}");
  if (!place) {
    refusal = place.error().message;
    return Fd();
  }
  auto connection = connect_to_executor(place->result()["socket"].string_or(""),
                                        std::chrono::seconds(limits::executor_request_seconds));
  Status sent = connection ? send_request(connection->get(), session.words) : Status(connection.error());
  RelayMessage message;
  if (sent && !receive(connection->get(), message)) sent = Error(Errc::unavailable, "its executor ended");
  if (sent && message.kind == RelayMessage::Kind::running) return connection;
  message.reason[sizeof message.reason - 1] = '\0';
  refusal = sent ? message.reason : sent.error().message;
  return Fd();
}

}  // namespace

Result<std::optional<int>> run_in_executor(Session& session, bool tell) {
  if (session.execution.front != 0) return std::optional<int>();  // this process is the worker
  std::string refusal;
  ASSIGN_OR_RETURN(Fd connection, begin(session, refusal));
  if (!connection.open()) {
    if (tell)
      fmt::print(stderr, "muniment: the daemon does not observe this command, so that its evidence is weak: {}\n",
                 escape_for_terminal(refusal));
    return std::optional<int>();
  }
  session.disconnect();
  const std::optional<int> status = Front(std::move(connection)).wait();
  if (status && WIFEXITED(*status)) return std::optional(WEXITSTATUS(*status));
  fmt::print(stderr, "muniment: the executor ended before the command, whose end may not be recorded\n");
  return std::optional<int>(exit_not_recorded);
}

}  // namespace muniment::cli
