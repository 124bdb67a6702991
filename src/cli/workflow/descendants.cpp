#include "cli/workflow/descendants.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

namespace muniment::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds patience{10};
constexpr std::chrono::milliseconds pause{1};

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

}  // namespace

void adopt_orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

Status kill_descendants(pid_t parent) {
  const auto end = std::chrono::steady_clock::now() + patience;
  for (;;) {
    std::vector<pid_t> found;
    for (const pid_t reaper : children_of(parent)) found = children_of(reaper);
    if (found.empty()) return success();
    if (std::chrono::steady_clock::now() > end)
      return Error(Errc::unavailable, fmt::format("the command left {} processes that could not be ended in {} s",
                                                  found.size(), patience.count()));
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::vector<pid_t> more = children_of(found[i]);
      found.insert(found.end(), more.begin(), more.end());
    }
    for (const pid_t process : found) ::kill(process, SIGKILL);
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace muniment::cli
