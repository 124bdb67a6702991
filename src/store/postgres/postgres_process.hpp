// Controls one running postmaster, started by this daemon or adopted. It uses the pidfd, so that a reused process
// number is never mistaken for the server.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "store/postgres/child_process.hpp"

namespace muniment::store {

struct PostgresPlace {
  std::string cluster;
  std::string programs;  // the folder of `postgres`
  std::string socket_folder;
  std::optional<Identity> user;
  int port = 0;
  bool without_tcp = false;  // starts without TCP, regardless of the settings
};

class PostgresProcess {
 public:
  // Starts a server that writes its output to the cluster's server.log.
  static Result<PostgresProcess> launch(const PostgresPlace& place);
  // Adopts a running server. Returns nullopt if it has ended.
  static std::optional<PostgresProcess> adopt(pid_t pid);

  enum class Readiness { ready, ended, interrupted, late };
  // Waits until the server accepts connections. Returns early if `interrupt` (an eventfd) becomes readable.
  Readiness wait_until_ready(const std::string& cluster, int interrupt, std::chrono::seconds limit);

  // Requests a fast shutdown, and forces the end if it takes longer than `patience`.
  void end(std::chrono::milliseconds patience);

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }
  // Call after pidfd became readable. Returns "exit status 1" or "signal 9"; the status of an adopted server is
  // unknown.
  std::string reap();
  // Returns whether the program file from which the server was started was replaced or removed.
  bool program_was_replaced(const std::string& programs) const;

 private:
  pid_t pid_ = 0;
  bool child_ = false;
  Fd pidfd_;
};

}  // namespace muniment::store
