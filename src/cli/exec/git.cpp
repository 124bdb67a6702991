#include "cli/exec/git.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/limits.hpp"
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

std::string line_of(const std::string& folder, std::vector<std::string> words) {
  std::string line = git_output(folder, std::move(words)).value_or("");
  line.resize(std::min(line.size(), line.find('\n')));
  return line;
}

// Settings that define the filter of Git LFS if the repository uses it: it compares a file with the hash that is
// committed. Any other filter would let the repository decide what git takes for the content of a file.
std::vector<std::string> lfs_settings(const std::string& folder) {
  constexpr std::array<std::pair<const char*, const char*>, 3> of_lfs = {
      std::pair{"filter.lfs.clean", "git-lfs clean -- %f"}, std::pair{"filter.lfs.process", "git-lfs filter-process"},
      std::pair{"filter.lfs.required", "true"}};
  std::vector<std::string> settings;
  for (const auto& [name, value] : of_lfs) {
    if (line_of(folder, {"config", "--get", name}) != value) continue;
    const std::size_t at = settings.size() / 2;
    settings.push_back(fmt::format("GIT_CONFIG_KEY_{}={}", at, name));
    settings.push_back(fmt::format("GIT_CONFIG_VALUE_{}={}", at, value));
  }
  settings.push_back(fmt::format("GIT_CONFIG_COUNT={}", settings.size() / 2));
  return settings;
}

}  // namespace

bool TaskBase::is_newer(const std::string& path) const {
  struct stat about {};
  if (!opened_at || ::lstat(path.c_str(), &about) != 0) return false;
  const std::int64_t changed = std::int64_t{about.st_ctim.tv_sec} * 1'000'000 + about.st_ctim.tv_nsec / 1'000;
  return changed + limits::file_time_tick_micros >= opened_at->micros;
}

CommitView::CommitView(const std::string& folder, const std::string& commit)
    : top_(line_of(folder, {"rev-parse", "--show-toplevel"})), temporary_("/tmp/muniment-index-XXXXXX") {
  const std::string objects = line_of(folder, {"rev-parse", "--path-format=absolute", "--git-path", "objects"});
  const std::string format = line_of(folder, {"rev-parse", "--show-object-format"});
  if (::mkdtemp(temporary_.data()) == nullptr) {
    temporary_.clear();
    return;
  }
  made_ = git_output("/", {"init", "-q", "--bare", "--template=", "--object-format=" + format, temporary_}).has_value();
  settings_ = lfs_settings(folder);
  for (const char* none : {"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_ATTR_NOSYSTEM=1"})
    settings_.emplace_back(none);
  settings_.push_back("GIT_DIR=" + temporary_);
  settings_.push_back("GIT_WORK_TREE=" + top_);
  settings_.push_back("GIT_OBJECT_DIRECTORY=" + objects);
  made_ = made_ && !top_.empty() && git({"read-tree", commit});
}

CommitView::~CommitView() {
  std::error_code failed;
  if (!temporary_.empty()) std::filesystem::remove_all(temporary_, failed);
}

std::optional<std::string> git_output(const std::string& folder, std::vector<std::string> words,
                                      const std::vector<std::string>& settings) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // Neither the environment nor the configuration may name a program that answers in the place of the tree.
  words.insert(words.begin(), {"git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c",
                               "safe.directory=*", "-C", folder});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const passwd* const user = ::getpwuid(::geteuid());
  const std::string home = std::string("HOME=") + (user == nullptr ? "/" : user->pw_dir);
  // A missing object of a partial clone must not be fetched: the repository names the program that would do it.
  std::vector<const char*> environment = {
      "PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C.UTF-8",           "GIT_NO_LAZY_FETCH=1",
      "GIT_ALLOW_PROTOCOL=none",           "GIT_NO_REPLACE_OBJECTS=1", home.c_str()};
  for (const std::string& setting : settings) environment.push_back(setting.c_str());
  environment.push_back(nullptr);
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
