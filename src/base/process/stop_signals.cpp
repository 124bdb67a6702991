#include "base/process/stop_signals.hpp"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

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

bool StopSignals::take() {
  bool came = false;
  for (signalfd_siginfo one{}; ::read(fd_.get(), &one, sizeof one) > 0;) came = true;
  return came;
}

}  // namespace muniment
