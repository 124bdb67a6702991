// Starting programs of the machine (initdb, postgres, useradd), as another user where the daemon is
// root. Nothing is inherited but the three standard streams; the environment is a clean one.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"

namespace muniment::store {

struct Identity {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string name;
};

struct Command {
  std::vector<std::string> argv;          // argv[0] is a path
  std::optional<Identity> run_as;         // nullopt: as the daemon itself
  int output = -1;                        // where stdout and stderr go; -1: /dev/null
};

// Errors: system_error when it could not be started at all.
Result<pid_t> spawn(const Command& command);

struct Finished {
  int exit_status = 0;                    // 128 + signal when a signal ended it
  std::string output;                     // stdout and stderr, the last 64 KiB
};

// Runs a command to its end.
Result<Finished> run_to_end(Command command);

int exit_status_of(int wait_status);
std::string errno_text(int error);        // "No such file or directory"

}  // namespace muniment::store
