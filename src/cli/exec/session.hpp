// Runs a command on a terminal of its own. A monitor process leads the session and is the parent of the command:
// without it the command's process group would be orphaned and the kernel would ignore ^Z in it.
#pragma once

#include <sys/types.h>

namespace muniment::cli {

// One message of the monitor: the pid of the command and a status as returned by waitpid(); 0x7fffffff: just started.
struct SessionReport {
  pid_t command = -1;
  int status = 0;
};
inline constexpr int session_started = 0x7fffffff;

// Must be called in a forked child. Returns in the process of the command, in the foreground of `terminal` (the slave
// side, not yet a controlling terminal). The monitor writes reports to `reports`, closes every other descriptor, and
// exits after the command. Returns false and sets errno if no process could be started.
bool enter_session(int terminal, int reports);

}  // namespace muniment::cli
