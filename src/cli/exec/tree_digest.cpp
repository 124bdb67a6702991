#include "cli/exec/tree_digest.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <vector>

#include "base/crypto/sha256.hpp"

extern char** environ;

namespace muniment::cli {
namespace {

// Runs git and gives what it printed; nullopt when it is not there or fails.
std::optional<std::string> git_output(const std::string& folder, std::vector<std::string> words) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  words.insert(words.begin(), {"git", "-C", folder});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t pid = 0;
  const int failed = ::posix_spawnp(&pid, "git", &actions, nullptr, arguments.data(), environ);
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

std::string trimmed(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::optional<Hash> hash_of_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return std::nullopt;
  Sha256 hash;
  std::vector<char> piece(256 * 1024);
  ssize_t got = 0;
  while ((got = ::read(file, piece.data(), piece.size())) > 0) {
    hash.update(std::string_view(piece.data(), static_cast<std::size_t>(got)));
  }
  ::close(file);
  if (got < 0) return std::nullopt;
  return hash.finish();
}

// One file's line; empty for what is not a file or a symbolic link (a submodule, a folder).
std::string line_of(const std::string& top, const std::string& name) {
  const std::string path = top + "/" + name;
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return {};
  std::optional<Hash> hash;
  if (S_ISLNK(status.st_mode)) {
    std::string target(4096, '\0');
    const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
    if (size >= 0) hash = sha256(std::string_view(target.data(), static_cast<std::size_t>(size)));
  } else if (S_ISREG(status.st_mode)) {
    hash = hash_of_file(path);
  }
  if (!hash) return {};
  // git knows of a file's mode only whether it can be executed.
  const char* mode = S_ISLNK(status.st_mode) ? "120000" : (status.st_mode & S_IXUSR) != 0 ? "100755" : "100644";
  return fmt::format("{} {} {}", mode, to_hex(*hash), name);
}

}  // namespace

std::string tree_digest(const std::string& folder) {
  const auto top_line = git_output(folder, {"rev-parse", "--show-toplevel"});
  if (!top_line) return {};
  const std::string top = trimmed(*top_line);
  const auto commit = git_output(folder, {"rev-parse", "--verify", "-q", "HEAD"});
  const auto listed = git_output(top, {"ls-files", "-z", "--cached", "--others", "--exclude-standard"});
  if (!listed) return {};
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin < listed->size();) {
    const std::size_t end = std::min(listed->find('\0', begin), listed->size());
    names.push_back(listed->substr(begin, end - begin));
    begin = end + 1;
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  Sha256 digest;
  for (const std::string& name : names) {
    const std::string line = line_of(top, name);
    if (line.empty()) continue;
    digest.update(line);
    digest.update(std::string_view("\0", 1));  // no name holds one
  }
  return fmt::format("git:{} sha256:{}", commit ? trimmed(*commit) : "none", to_hex(digest.finish()));
}

}  // namespace muniment::cli
