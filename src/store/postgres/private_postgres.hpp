// Runs the private Postgres. Without configuration the daemon runs its own server: a cluster in <data>/postgres that
// listens on a Unix socket in a folder closed to other users. One thread supervises it, starts it again if it dies, and
// restarts it if a package upgrade replaced its program file (the old server could not load functions). The server
// survives a killed daemon, and the next daemon adopts it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/config/reporter_listen.hpp"
#include "base/limits.hpp"
#include "base/result.hpp"

namespace muniment::store {

struct PrivatePostgresOptions {
  std::string data_dir;
  // Time after which a start counts as failed; crash recovery may replay up to 4 GB of WAL.
  std::chrono::seconds start_limit{600};
  // Receives messages for the operator: "Postgres ended (signal 9); starting it again". Called from `start` and from
  // the supervising thread.
  std::function<void(const std::string&)> notice;
  // Address for reporters, in addition to the Unix socket.
  std::optional<ReporterListen> reporter{};
  // A descriptor that becomes readable to interrupt the start; -1: none.
  int interrupt = -1;
};

inline constexpr std::chrono::milliseconds shutdown_patience{limits::postgres_shutdown_ms_max};

class PrivatePostgres {
 public:
  // Creates the cluster if there is none, starts or adopts the server, waits until it accepts connections, and creates
  // the database `muniment` if it is missing. Errors: conflict for a cluster of another major version, or a port in
  // use; denied if a folder's permissions block the server; unavailable if interrupted, and no server runs then;
  // system_error with the end of the server's log.
  static Result<std::unique_ptr<PrivatePostgres>> start(PrivatePostgresOptions options);
  ~PrivatePostgres();  // stops as `stop` does

  // Example: "postgresql://muniment@/muniment?host=%2Fvar%2Flib%2F…&port=5432".
  std::string uri() const;
  std::string log_file() const;
  int pid() const;     // pid of the server; 0 while none runs
  bool alive() const;  // the server runs and accepts connections

  // Requests a fast shutdown: open transactions are rolled back and a checkpoint is written. After `patience` it
  // requests an immediate shutdown, and then kills the server, which recovers at the next start. No other call may
  // follow.
  void stop(std::chrono::milliseconds patience = shutdown_patience);

 private:
  class Impl;
  explicit PrivatePostgres(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muniment::store
