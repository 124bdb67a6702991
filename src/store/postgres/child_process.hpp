// Starting programs of the machine (initdb, postgres, useradd, hooks), as another user where the daemon is
// root. Nothing is inherited but the three standard streams; the environment is a clean one. Each has a session, and
// so a process group, of its own, whose number is its pid.
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
  std::optional<Identity> run_as;          // nullopt: as the daemon itself
  int input = -1;                          // what stdin reads; -1: /dev/null
  int output = -1;                         // where stdout goes; -1: /dev/null
  int errors = -1;                         // where stderr goes; -1: where stdout does
  std::vector<std::string> environment{};  // "NAME=value"; empty: one for programs of the database
  std::int64_t cpu_seconds_max = 0;        // of each of its processes; 0: no limit
  bool core_dumps = true;
  bool ends_with_thread = false;  // killed when the thread that started it ends, however that ends
};

// Errors: system_error when it could not be started at all.
Result<pid_t> spawn(const Command& command);

struct Finished {
  int exit_status = 0;  // 128 + signal when a signal ended it
  std::string output;   // stdout and stderr, the last 64 KiB
};

// Runs a command to its end.
Result<Finished> run_to_end(Command command);

int exit_status_of(int wait_status);
std::string errno_text(int error);  // "No such file or directory"

}  // namespace muniment::store
