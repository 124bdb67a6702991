#include "cli/exec/git.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
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
#include <fstream>
#include <map>
#include <string_view>

#include "base/crypto/git_object.hpp"
#include "base/crypto/sha256.hpp"
#include "base/files/file.hpp"
#include "base/limits.hpp"
#include "base/process/user.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t blobs_at_once = 16;  // blobs whose content is in memory

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

// Settings of a comparison: it reads no content to find out whether a file changed, because the content of an object
// may be forged, and it has the filter of Git LFS if the repository uses it, which compares a file with the hash that
// is committed. Any other filter would let the repository decide what git takes for the content of a file.
std::vector<std::string> view_settings(const std::string& folder) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> of_lfs = {
      std::pair{"filter.lfs.clean", "git-lfs clean -- %f"}, std::pair{"filter.lfs.process", "git-lfs filter-process"},
      std::pair{"filter.lfs.required", "true"}};
  std::map<std::string_view, std::string_view> taken = {{"diff.autorefreshindex", "false"}};
  const std::vector<std::string> found =
      split_at_nul(git_output(folder, {"config", "-z", "--get-regexp", "^filter\\.lfs\\."}).value_or(""));
  for (const std::string& setting : found) {
    const std::string_view name = std::string_view(setting).substr(0, setting.find('\n'));
    const std::string_view value = std::string_view(setting).substr(std::min(name.size() + 1, setting.size()));
    taken.erase(name);  // the last value counts
    if (std::ranges::find(of_lfs, std::pair{name, value}) != of_lfs.end()) taken.emplace(name, value);
  }
  std::vector<std::string> settings = {"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_ATTR_NOSYSTEM=1",
                                       fmt::format("GIT_CONFIG_COUNT={}", taken.size())};
  for (std::size_t at = 0; const auto& [name, value] : taken) {
    settings.push_back(fmt::format("GIT_CONFIG_KEY_{}={}", at, name));
    settings.push_back(fmt::format("GIT_CONFIG_VALUE_{}={}", at++, value));
  }
  return settings;
}

// Reads all that a child writes. Returns whether it closed its output in time.
bool read_in_time(int output, std::chrono::milliseconds patience, std::string& text) {
  const auto end = std::chrono::steady_clock::now() + patience;
  char piece[16 * 1024];
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    if (left <= 0) return false;
    pollfd readable{output, POLLIN, 0};
    if (::poll(&readable, 1, static_cast<int>(left)) <= 0) continue;
    const ssize_t got = ::read(output, piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got == 0;
    text.append(piece, static_cast<std::size_t>(got));
  }
}

}  // namespace

bool TaskBase::is_newer(const std::string& path) const {
  struct stat about {};
  if (!opened_at || ::lstat(path.c_str(), &about) != 0) return false;
  return changed_at(about).micros + limits::file_time_tick_micros >= opened_at->micros;
}

CommitView::CommitView(const std::string& folder, const std::string& commit) {
  const std::string place = git_output(folder, {"rev-parse", "--path-format=absolute", "--show-toplevel",
                                                "--show-object-format", "--git-path", "objects"})
                                .value_or("");
  const std::size_t format_at = place.find('\n') + 1, objects_at = place.find('\n', format_at) + 1;
  if (format_at == 0 || objects_at == 0) return;
  top_ = place.substr(0, format_at - 1);
  const std::string format = place.substr(format_at, objects_at - format_at - 1);
  id_digits_ = format == "sha256" ? to_hex(Hash()).size() : git_sha1_digits;
  temporary_ = "/tmp/muniment-index-XXXXXX";
  if (::mkdtemp(temporary_.data()) == nullptr) {
    temporary_.clear();
    return;
  }
  settings_ = view_settings(folder);
  settings_.push_back("GIT_DIR=" + temporary_);
  settings_.push_back("GIT_WORK_TREE=" + top_);
  settings_.push_back("GIT_OBJECT_DIRECTORY=" + place.substr(objects_at, place.size() - objects_at - 1));
  commit_ = line_of(folder, {"rev-parse", "--verify", "-q", commit + "^{commit}"});
  if (git_output("/", {"init", "-q", "--bare", "--template=", "--object-format=" + format, temporary_})) read_commit();
}

// The index is read together with an empty tree, because git then remembers no ids of folders that it did not compute.
void CommitView::read_commit() {
  made_ = !commit_.empty() && git({"read-tree", git_object_id("tree", "", id_digits_), commit_});
  if (!made_) return;
  const std::string text = git({"cat-file", "commit", commit_}).value_or("");
  const auto tree = git({"write-tree"});
  authentic_ = tree && text.starts_with("tree " + *tree) && git_object_id("commit", text, id_digits_) == commit_;
  git({"update-index", "-q", "--really-refresh"});  // fails if a file changed
}

std::string CommitView::each_blob(const std::vector<std::string>& ids,
                                  const std::function<void(std::size_t, std::string_view)>& use) const {
  const std::string list = temporary_ + "/ids";
  for (std::size_t begin = 0; begin < ids.size(); begin += blobs_at_once) {
    const std::size_t end = std::min(begin + blobs_at_once, ids.size());
    std::ofstream file(list);
    for (std::size_t i = begin; i < end; ++i) file << ids[i] << '\n';
    file.close();
    const std::string all =
        git_output(top_, {"cat-file", "--batch"}, settings_, comparison_patience, list).value_or("");
    std::string_view rest = all;
    for (std::size_t i = begin; i < end; ++i) {
      const std::string_view head = rest.substr(0, rest.find('\n'));  // "ID blob SIZE"
      const auto size = static_cast<std::size_t>(parse_decimal(head.substr(head.rfind(' ') + 1)).value_or(-1));
      rest.remove_prefix(std::min(head.size() + 1, rest.size()));
      const std::string_view content = rest.substr(0, size);
      if (content.size() != size || git_object_id("blob", content, id_digits_) != ids[i]) return ids[i];
      use(i, content);
      rest.remove_prefix(std::min(size + 1, rest.size()));
    }
  }
  return {};
}

CommitView::~CommitView() {
  std::error_code failed;
  if (!temporary_.empty()) std::filesystem::remove_all(temporary_, failed);
}

std::optional<std::string> git_output(const std::string& folder, std::vector<std::string> words,
                                      const std::vector<std::string>& settings, std::chrono::milliseconds patience,
                                      const std::string& input) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, input.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // Neither the environment nor the configuration may name a program that answers in the place of the tree.
  words.insert(words.begin(), {"git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c",
                               "safe.directory=*", "-C", folder});
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
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
  const bool ended = failed == 0 && read_in_time(ends[0], patience, output);
  ::close(ends[0]);
  if (failed == 0 && !ended) ::kill(pid, SIGKILL);
  int status = 0;
  if (failed != 0 || ::waitpid(pid, &status, 0) != pid || !ended || status != 0) return std::nullopt;
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
