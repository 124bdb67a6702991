#include "cli/exec/git.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "base/process/user.hpp"

namespace muniment::cli {
namespace {

// The system's git, also if the caller's PATH begins with a program of that name.
const char* program_of_git() {
  for (const char* path : {"/usr/bin/git", "/usr/local/bin/git"}) {
    if (::access(path, X_OK) == 0) return path;
  }
  return "/bin/git";
}

}  // namespace

std::optional<std::string> git_output(const std::string& folder, std::vector<std::string> words) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // Neither the environment nor the configuration may name a program that answers in the place of the tree.
  words.insert(words.begin(), {"git", "-c", "core.fsmonitor=false", "-c", "safe.directory=*", "-C", folder});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const std::string home = "HOME=" + std::string(std::getenv("HOME") == nullptr ? "/" : std::getenv("HOME"));
  // A missing object of a partial clone must not be fetched: the repository names the program that would do it.
  const std::array<const char*, 7> environment = {"PATH=/usr/local/bin:/usr/bin:/bin",
                                                  "LC_ALL=C.UTF-8",
                                                  "GIT_NO_LAZY_FETCH=1",
                                                  "GIT_ALLOW_PROTOCOL=none",
                                                  "GIT_NO_REPLACE_OBJECTS=1",
                                                  home.c_str(),
                                                  nullptr};
  pid_t pid = 0;
  const UntraceableChildren guard;
  const int failed = ::posix_spawn(&pid, program_of_git(), &actions, nullptr, arguments.data(),
                                   const_cast<char* const*>(environment.data()));
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string output;
  char piece[16 * 1024];
  while (failed == 0) {
    const ssize_t got = ::read(ends[0], piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    output.append(piece, static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  if (failed != 0 || ::waitpid(pid, &status, 0) != pid || status != 0) return std::nullopt;
  return output;
}

std::vector<std::string> split_at_nul(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\0', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string commit_of(const std::string& tree_digest) {
  constexpr std::string_view prefix = "git:";
  if (!tree_digest.starts_with(prefix)) return {};
  const std::string commit = tree_digest.substr(prefix.size(), tree_digest.find(' ') - prefix.size());
  const bool hex = commit.find_first_not_of("0123456789abcdef") == std::string::npos;
  return hex && commit.size() >= 40 ? commit : std::string();
}

}  // namespace muniment::cli
