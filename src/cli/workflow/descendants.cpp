#include "cli/workflow/descendants.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <vector>

namespace muniment::cli {
namespace {

namespace fs = std::filesystem;

// Each thread has a list of the processes that it started.
std::vector<pid_t> children_of(pid_t process) {
  std::vector<pid_t> children;
  std::error_code failed;
  for (const auto& thread : fs::directory_iterator(fmt::format("/proc/{}/task", process), failed)) {
    std::ifstream list(thread.path() / "children");
    for (pid_t child = 0; list >> child;) children.push_back(child);
  }
  return children;
}

void kill_below(std::vector<pid_t> found) {
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::vector<pid_t> more = children_of(found[i]);
    found.insert(found.end(), more.begin(), more.end());
  }
  for (const pid_t process : found) ::kill(process, SIGKILL);
}

}  // namespace

void adopt_orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

void end_own_descendants() {
  for (;;) {
    kill_below(children_of(::getpid()));
    while (::waitpid(-1, nullptr, WNOHANG) > 0) continue;
    if (::waitpid(-1, nullptr, 0) < 0 && errno == ECHILD) return;
  }
}

void kill_descendants(pid_t parent) {
  for (const pid_t reaper : children_of(parent)) kill_below(children_of(reaper));
}

}  // namespace muniment::cli
