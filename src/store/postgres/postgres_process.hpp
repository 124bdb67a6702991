// One running postmaster, ours by birth or adopted: started, waited for, ended, by its pidfd, so
// that a process number that was given away again is never mistaken for it.
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
  bool without_tcp = false;  // whatever the settings say
};

class PostgresProcess {
 public:
  // Starts a server, its output going to the cluster's server.log.
  static Result<PostgresProcess> launch(const PostgresPlace& place);
  // Takes over one that runs already. nullopt: it ended meanwhile.
  static std::optional<PostgresProcess> adopt(pid_t pid);

  enum class Readiness { ready, ended, interrupted, late };
  // Waits until it takes connections. Returns early when `interrupt` (an eventfd) becomes readable.
  Readiness wait_until_ready(const std::string& cluster, int interrupt, std::chrono::seconds limit);

  // Fast shutdown, and the harder ways if that takes longer than `patience`.
  void end(std::chrono::milliseconds patience);

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }
  // After pidfd became readable: "exit status 1", "signal 9"; an adopted server's is unknown.
  std::string reap();
  // The program file it was started from was replaced or removed.
  bool program_was_replaced(const std::string& programs) const;

 private:
  pid_t pid_ = 0;
  bool child_ = false;
  Fd pidfd_;
};

}  // namespace muniment::store
