#include "cli/exec/git.hpp"

#include <fcntl.h>
#include <fmt/format.h>
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

// Returns settings that make every filter of the repository pass its input through. A filter decides what git takes for
// the content of a file. That of Git LFS compares the file with the hash that is committed.
std::vector<std::string> without_filters(const std::string& folder) {
  constexpr std::array<std::string_view, 3> of_lfs = {"filter.lfs.clean\ngit-lfs clean -- %f",
                                                      "filter.lfs.process\ngit-lfs filter-process",
                                                      "filter.lfs.required\ntrue"};
  const auto named = git_output(folder, {"config", "-z", "--get-regexp", R"(^filter\..*\.(clean|process|required)$)"});
  std::vector<std::string> settings;
  for (const std::string& setting : split_at_nul(named.value_or(""))) {
    if (std::ranges::find(of_lfs, setting) != of_lfs.end()) continue;
    const std::string name = setting.substr(0, setting.find('\n'));
    const std::size_t at = settings.size() / 2;
    settings.push_back(fmt::format("GIT_CONFIG_KEY_{}={}", at, name));
    settings.push_back(fmt::format("GIT_CONFIG_VALUE_{}={}", at, name.ends_with(".required") ? "false" : ""));
  }
  settings.push_back(fmt::format("GIT_CONFIG_COUNT={}", settings.size() / 2));
  return settings;
}

}  // namespace

bool TaskBase::is_newer(const std::string& path) const {
  struct stat about {};
  if (!opened_at || ::lstat(path.c_str(), &about) != 0) return false;
  return Time{std::int64_t{about.st_ctim.tv_sec} * 1'000'000 + about.st_ctim.tv_nsec / 1'000} >= *opened_at;
}

CommitView::CommitView(std::string folder, const std::string& commit)
    : folder_(std::move(folder)), temporary_("/tmp/muniment-index-XXXXXX"), settings_(without_filters(folder_)) {
  if (::mkdtemp(temporary_.data()) == nullptr) {
    temporary_.clear();
    return;
  }
  settings_.push_back("GIT_INDEX_FILE=" + temporary_ + "/index");
  made_ = git({"read-tree", "--no-sparse-checkout", commit}).has_value();
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
  words.insert(words.begin(), {"git", "-c", "core.fsmonitor=false", "-c", "safe.directory=*", "-C", folder});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const std::string home = "HOME=" + std::string(std::getenv("HOME") == nullptr ? "/" : std::getenv("HOME"));
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
