// Creates every part of the daemon in the order of their dependencies, and destroys them in the reverse order. The only
// unit that knows all parts.
#pragma once

#include <memory>

#include "base/config/config.hpp"
#include "base/process/stop_signals.hpp"
#include "base/result.hpp"
#include "daemon/service_manager.hpp"
#include "mcp/offer/extension.hpp"

namespace muniment::daemon {

// The operator's options for one start.
struct StartChoices {
  bool continue_restored = false;             // restored_log.hpp
  bool adopt_tail = false;                    // log_start.hpp
  const mcp::Extension* extension = nullptr;  // outlives the daemon; may be null
};

class Daemon {
 public:
  // Locks the data folder, starts Postgres, takes the log over, and listens. Returns null, after stopping all that was
  // started, if a signal arrived before the log was opened. `serve` handles a later signal. `signals` must outlive the
  // daemon. Errors, each with the next step: conflict (another daemon holds the folder or the log; data of another
  // version), unavailable.
  static Result<std::unique_ptr<Daemon>> start(const Config& config, ServiceManager manager,
                                               const StartChoices& choices, StopSignals& signals);
  ~Daemon();

  // Serves until a signal, or until another writer takes the log. Returns the exit code: 0 after an orderly stop, 1
  // otherwise.
  int serve();

 private:
  struct Parts;
  explicit Daemon(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace muniment::daemon
