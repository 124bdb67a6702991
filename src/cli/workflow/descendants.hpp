// Kills the processes that an unconfined command leaves behind, also those that left its session. A confined command
// has a process namespace for this.
#pragma once

#include <sys/types.h>

namespace muniment::cli {

// Makes this process the parent of descendants whose own parent exits. It must wait for its children.
void adopt_orphans();

// Kills and awaits the descendants of this process, which called adopt_orphans().
void end_own_descendants();

// Kills the descendants of a child of `parent` that called adopt_orphans(), but not that child. It may miss processes
// that start meanwhile: call it until that child has no children.
void kill_descendants(pid_t parent);

}  // namespace muniment::cli
