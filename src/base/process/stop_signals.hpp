// Blocks SIGTERM, SIGINT and SIGHUP for a process that must stop its Postgres before it exits. Code that waits must
// also poll the descriptor of this class.
#pragma once

#include <signal.h>

#include "base/files/file.hpp"

namespace muniment {

class StopSignals {
 public:
  // Blocks the signals in this thread and in threads that it starts. An ignored SIGHUP stays ignored (nohup).
  StopSignals();
  // Discards pending signals, because the process has stopped its work as they request.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  int fd() const { return fd_.get(); }  // readable while a signal is pending
  bool take();                          // consumes a pending signal and returns true, otherwise false

 private:
  sigset_t before_{};
  Fd fd_;
};

}  // namespace muniment
