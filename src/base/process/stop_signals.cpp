#include "base/process/stop_signals.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstring>

namespace muniment {

StopSignals::StopSignals() {
  sigset_t held;
  sigemptyset(&held);
  sigaddset(&held, SIGTERM);
  sigaddset(&held, SIGINT);
  sigaddset(&held, SIGQUIT);
  struct sigaction hangup {};
  ::sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) sigaddset(&held, SIGHUP);
  ::pthread_sigmask(SIG_BLOCK, &held, nullptr);
  fd_ = Fd(::signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK));
}

std::optional<std::string> StopSignals::take() {
  std::optional<std::string> came;
  for (signalfd_siginfo one{}; ::read(fd_.get(), &one, sizeof one) > 0;)
    came = fmt::format("SIG{} from pid {}", ::sigabbrev_np(static_cast<int>(one.ssi_signo)), one.ssi_pid);
  return came;
}

}  // namespace muniment
