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

bool starts_with_any(std::string_view name, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return name.starts_with(word); });
}

bool contains_any(std::string_view name, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Files that configure more than tests. A change counts only if a changed line mentions tests.
bool may_configure_tests(std::string_view path) {
  constexpr std::array<std::string_view, 6> names = {"pyproject.toml", "setup.cfg", "package.json",
                                                     "Cargo.toml",     "Makefile",  "CMakeLists.txt"};
  return std::ranges::find(names, name_of(path)) != names.end();
}

bool diff_speaks_of_tests(const std::string& folder, const std::string& commit, const std::string& path) {
  const auto diff =
      git_output(folder, {"diff", "--no-ext-diff", "--no-color", "-U0", commit, "--", ":(top,literal)" + path});
  if (!diff) return false;
  for (std::size_t begin = 0; begin < diff->size();) {
    const std::size_t end = std::min(diff->find('\n', begin), diff->size());
    const std::string_view line = std::string_view(*diff).substr(begin, end - begin);
    const bool changed =
        (line.starts_with('+') && !line.starts_with("+++")) || (line.starts_with('-') && !line.starts_with("---"));
    if (changed && contains_any(line, {"test", "jest", "vitest", "coverage"})) return true;
    begin = end + 1;
  }
  return false;
}

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

bool is_test_path(const std::string& path) {
  const std::string in_root = "/" + path;
  const std::string_view name = name_of(path);
  const std::string_view stem = name.substr(0, name.find('.'));
  return contains_any(in_root, {"/test/", "/tests/", "/__tests__/", "/spec/", "/testdata/", "/__snapshots__/"}) ||
         starts_with_any(name, {"test_", "tests."}) || contains_any(name, {".test.", ".spec."}) ||
         stem.ends_with("_test") || stem.ends_with("_tests") || stem.ends_with("_spec") || stem.ends_with("Test") ||
         stem.ends_with("Tests");
}

bool is_test_configuration(const std::string& path) {
  const std::string_view name = name_of(path);
  return starts_with_any(name, {"conftest.py", "pytest.ini", ".pytest.ini", "tox.ini", "noxfile.py", "jest.config.",
                                "vitest.config.", "karma.conf.", ".mocharc", "playwright.config.",
                                "CTestTestfile.cmake", "CTestCustom.cmake", "phpunit.xml", ".coveragerc", ".rspec"});
}

std::vector<std::string> changed_tests(const std::string& folder, const std::string& commit, std::size_t paths_max) {
  if (commit.empty()) return {};
  if (!git_output(folder, {"rev-parse", "--git-dir"})) return {};
  const auto changed = git_output(folder, {"-c", "diff.relative=false", "diff", "--no-ext-diff", "--no-textconv",
                                           "--no-renames", "--name-status", "-z", commit});
  const auto added = git_output(folder, {"ls-files", "-z", "--others", "--exclude-standard", "--full-name", ":/"});
  const auto tagged = git_output(folder, {"ls-files", "-z", "-v", "--full-name", ":/"});
  std::vector<std::string> found;
  if (!changed && commit != "HEAD") found.push_back("(git cannot compare with " + commit + ")");
  for (const std::string& line : split_at_nul(tagged.value_or(""))) {
    // "h path": assume-unchanged, "S path": skip-worktree. git ignores changes in both.
    const bool hidden = line.size() > 2 && (line[0] == 'S' || (line[0] >= 'a' && line[0] <= 'z'));
    if (hidden && (is_test_path(line.substr(2)) || is_test_configuration(line.substr(2))))
      found.push_back(line.substr(2));
  }
  const std::vector<std::string> words = split_at_nul(changed.value_or(""));
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    const std::string& path = words[i + 1];
    const bool counts = is_test_configuration(path) || (words[i] != "A" && is_test_path(path)) ||
                        (may_configure_tests(path) && diff_speaks_of_tests(folder, commit, path));
    if (counts) found.push_back(path);
  }
  for (const std::string& path : split_at_nul(added.value_or(""))) {
    if (is_test_configuration(path)) found.push_back(path);
  }
  std::ranges::sort(found);
  if (found.size() > paths_max) found.resize(paths_max);
  return found;
}

std::string commit_of(const std::string& tree_digest) {
  constexpr std::string_view prefix = "git:";
  if (!tree_digest.starts_with(prefix)) return {};
  const std::string commit = tree_digest.substr(prefix.size(), tree_digest.find(' ') - prefix.size());
  const bool hex = commit.find_first_not_of("0123456789abcdef") == std::string::npos;
  return hex && commit.size() >= 40 ? commit : std::string();
}

}  // namespace muniment::cli
