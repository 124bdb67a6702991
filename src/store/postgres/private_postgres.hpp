// The private Postgres: with no configuration the daemon runs its own server, a cluster in
// <data>/postgres that listens on a Unix socket in a folder closed to other users. One thread
// supervises it: a server that dies is started again, and one whose program file was replaced by a
// package upgrade is restarted (functions would fail to load in the old one). The server outlives a
// daemon that is killed; the next daemon adopts it.
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
  // How long a start may take before it counts as failed; crash recovery replays up to 4 GB of WAL.
  std::chrono::seconds start_limit{600};
  // What an operator should read: "Postgres ended (signal 9); starting it again". Called from `start`
  // and from the supervising thread.
  std::function<void(const std::string&)> notice;
  // Where it listens for reporters, beside its Unix socket.
  std::optional<ReporterListen> reporter{};
  // A descriptor that becomes readable when the start is to be broken off; -1: none.
  int interrupt = -1;
};

inline constexpr std::chrono::milliseconds shutdown_patience{limits::postgres_shutdown_ms_max};

class PrivatePostgres {
 public:
  // Makes the cluster if there is none, starts or adopts the server, waits until it takes
  // connections, and makes the database `muniment` if it is missing. Errors: conflict for a cluster
  // of another major version, and for a port that another program has; denied when a folder's owner stands in the way;
  // unavailable when it was interrupted, and nothing runs then; system_error with the end of the server's log.
  static Result<std::unique_ptr<PrivatePostgres>> start(PrivatePostgresOptions options);
  ~PrivatePostgres();  // stops as by `stop`

  // "postgresql://muniment@/muniment?host=%2Fvar%2Flib%2F…&port=5432"
  std::string uri() const;
  std::string log_file() const;
  int pid() const;     // of the server, 0 while there is none
  bool alive() const;  // it runs and takes connections

  // A fast shutdown: open transactions are rolled back, a checkpoint is written. A server that takes longer than
  // `patience` is told to end at once, and then killed; the next one recovers. Nothing after that.
  void stop(std::chrono::milliseconds patience = shutdown_patience);

 private:
  class Impl;
  explicit PrivatePostgres(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muniment::store
