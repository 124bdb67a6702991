// Blocks SIGTERM, SIGINT, SIGQUIT and SIGHUP for a process that must stop its children before it exits. Code that waits
// must also poll the descriptor of this class.
#pragma once

#include <optional>
#include <string>

#include "base/files/file.hpp"

namespace muniment {

class StopSignals {
 public:
  // Blocks the signals in this thread and in threads that it starts, until the process exits: a signal that arrives
  // during its exit has no effect. An ignored SIGHUP stays ignored (nohup).
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  int fd() const { return fd_.get(); }  // readable while a signal is pending
  // Consumes the pending signals and describes the last, "SIGTERM from pid 4711"; nullopt: none is pending.
  std::optional<std::string> take();

 private:
  Fd fd_;
};

}  // namespace muniment
