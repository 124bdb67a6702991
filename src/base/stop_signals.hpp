// SIGTERM and SIGINT for whoever has a Postgres running that must not be left behind: they are held back, so that one
// that comes does not end the process; whoever waits for something looks here, too.
#pragma once

#include <signal.h>

#include "base/file.hpp"

namespace muniment {

class StopSignals {
 public:
  // Held back from here on, in this thread and in those that it starts.
  StopSignals();
  // What came and was not taken is delivered now.
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
