// Failpoints: named places where the fault harness makes the daemon die, fail or dawdle. They are
// compiled in only with -DMUNIMENT_FAILPOINTS (meson -Dfailpoints=true) and cost nothing otherwise.
//
// Armed by the environment, one action a name:
//   MUNIMENT_FAILPOINT="artifact.after_link=kill@3,artifact.fsync=error@1,append.commit=sleep:50@2+"
// `@3` is the third time that the place is passed, `@2+` the second and every later one. Actions:
// kill (SIGKILL to this process), error (the place reports a failure), sleep:<milliseconds>,
// wait:<path> (until that file is there, two minutes at most: for what has to come in between).
// Whatever fires appends its name to the file that MUNIMENT_FAILPOINT_LOG names, so that a harness
// can count, and can fail a run in which nothing fired.
#pragma once

#include <string_view>

#ifdef MUNIMENT_FAILPOINTS

namespace muniment::failpoint {

// Passes the place. True: an error is to be injected here.
bool pass(std::string_view name);

// Arms anew, in place of what the environment said, and counts from zero; for unit tests.
void arm(std::string_view plan);

}  // namespace muniment::failpoint

#define FAILPOINT(name) static_cast<void>(::muniment::failpoint::pass(name))
// if (FAILPOINT_FAILS("artifact.fsync")) { errno = EIO; … }
#define FAILPOINT_FAILS(name) (::muniment::failpoint::pass(name))

#else

#define FAILPOINT(name) static_cast<void>(0)
#define FAILPOINT_FAILS(name) (false)

#endif
