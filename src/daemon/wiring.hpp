// Makes one of everything, in the order in which they need each other, and takes it apart in the
// reverse order. The only place that knows all the parts.
#pragma once

#include <memory>

#include "base/config/config.hpp"
#include "base/process/stop_signals.hpp"
#include "base/result.hpp"
#include "daemon/service_manager.hpp"

namespace muniment::daemon {

// What an operator decides for one start.
struct StartChoices {
  bool continue_restored = false;    // restored_log.hpp
  bool adopt_tail = false;           // log_start.hpp
  bool conformance_fixture = false;  // mcp/fixture.hpp
};

class Daemon {
 public:
  // Takes the data folder, brings Postgres up, takes the log over, and listens. Errors name what to
  // do: conflict (another daemon holds the folder or the log; another version's data), unavailable.
  // None, if a signal came before the log was opened: what was started by then has ended. One that comes later
  // is obeyed by `serve`. `signals` outlives it: it is its parts that must not be left behind.
  static Result<std::unique_ptr<Daemon>> start(const Config& config, ServiceManager manager,
                                               const StartChoices& choices, StopSignals& signals);
  ~Daemon();

  // Until a signal, or until the log is lost to another writer. The exit code: 0 after an
  // orderly stop, 1 otherwise.
  int serve();

 private:
  struct Parts;
  explicit Daemon(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace muniment::daemon
