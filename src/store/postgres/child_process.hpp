// Starts programs of the machine (initdb, postgres, useradd, hooks), as another user if the daemon is root. The child
// inherits only the three standard streams and gets a clean environment. Each child has its own session, and therefore
// a process group whose number is its pid.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/files/file.hpp"
#include "base/result.hpp"

namespace muniment::store {

struct Identity {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string name;
};

struct Command {
  std::vector<std::string> argv;           // argv[0] is a path
  std::optional<Identity> run_as;          // nullopt: the daemon's user
  int input = -1;                          // descriptor for stdin; -1: /dev/null
  int output = -1;                         // descriptor for stdout; -1: /dev/null
  int errors = -1;                         // descriptor for stderr; -1: same as stdout
  std::vector<std::string> environment{};  // "NAME=value"; empty: the default environment of database programs
  std::int64_t cpu_seconds_max = 0;        // CPU limit of each process; 0: none
  bool core_dumps = true;
  bool ends_with_thread = false;  // killed when the thread that started it ends for any reason
};

// Errors: system_error if the program could not be started.
Result<pid_t> spawn(const Command& command);

struct Finished {
  int exit_status = 0;  // 128 + signal if a signal ended it
  std::string output;   // stdout and stderr, the last 64 KiB
};

// Runs a command and waits for its end.
Result<Finished> run_to_end(Command command);

int exit_status_of(int wait_status);
std::string errno_text(int error);  // "No such file or directory"

}  // namespace muniment::store
