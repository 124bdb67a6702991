// A command on a terminal of its own. A monitor process leads the terminal's session and is the command's parent:
// without it the command's process group would be orphaned, and the kernel would ignore ^Z in it.
#pragma once

#include <sys/types.h>

namespace muniment::cli {

// One message of the monitor: the command's pid, and a status as of waitpid(); 0x7fffffff: it was just started.
struct SessionReport {
  pid_t command = -1;
  int status = 0;
};
inline constexpr int session_started = 0x7fffffff;

// To be called in a forked child. Returns in the command's process, which is in the foreground of `terminal` (a
// terminal's own end, not yet a controlling one). The monitor writes reports to `reports`, closes every other
// descriptor, and exits after the command. False: no process could be started, errno says why.
bool enter_session(int terminal, int reports);

}  // namespace muniment::cli
