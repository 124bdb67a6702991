// SIGTERM, SIGINT and SIGHUP for whoever has a Postgres running that must not be left behind: they are held back,
// however often they come, so that none ends the process; whoever waits for something looks here, too.
#pragma once

#include <signal.h>

#include "base/files/file.hpp"

namespace muniment {

class StopSignals {
 public:
  // Held back from here on, in this thread and in those that it starts. A SIGHUP that was ignored stays so (nohup).
  StopSignals();
  // What came and was not taken has been obeyed: it was to end what has ended now.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  int fd() const { return fd_.get(); }  // readable once one has come
  bool take();                          // whether one had come: it is obeyed, and not delivered any more

 private:
  sigset_t before_{};
  Fd fd_;
};

}  // namespace muniment
