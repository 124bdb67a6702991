// Failpoints: named places where the fault harness kills, fails or delays the daemon. A build with `meson
// -Dfailpoints=true` links failpoint.cpp, any other failpoint_none.cpp; all other objects are the same in both.
// | The environment arms them, with one action for each name:
//   MUNIMENT_FAILPOINT="artifact.after_link=kill@3,artifact.fsync=error@1,append.commit=sleep:50@2+"
// `@3` is the third pass of the place, `@2+` the second and every later one. Actions: kill (SIGKILL to this process),
// error (the place reports a failure), sleep:<milliseconds>, wait:<path> (until that file exists, at most two minutes).
// A failpoint that fires appends its name to the file in MUNIMENT_FAILPOINT_LOG, so that a harness can count them and
// can fail a run in which none fired.
#pragma once

#include <string_view>

namespace muniment::failpoint {

extern const bool present;

// Passes the place. Returns true if an error must be injected.
bool pass(std::string_view name);

// Arms the plan instead of the environment's and resets the counts; for unit tests.
void arm(std::string_view plan);

}  // namespace muniment::failpoint

// Without failpoints, a place reads `present` and does not evaluate its name.
// Example: if (FAILPOINT_FAILS("artifact.fsync")) { errno = EIO; … }
#define FAILPOINT_FAILS(name) (::muniment::failpoint::present && ::muniment::failpoint::pass(name))
#define FAILPOINT(name) static_cast<void>(FAILPOINT_FAILS(name))
