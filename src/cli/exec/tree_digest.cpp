#include "cli/exec/tree_digest.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/crypto/sha256.hpp"
#include "base/files/file.hpp"
#include "cli/exec/git.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t root_digits = 16;  // of the hash of the tree's path
constexpr int commits_searched_max = 100;

std::string trimmed(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// Returns whether the folder is the tree or lies in it. The settings of a repository may name another tree as its own.
bool lies_in(const std::string& folder, const std::string& top) {
  std::error_code failed, failed_too;
  const auto inner = std::filesystem::canonical(folder, failed);
  const auto outer = std::filesystem::canonical(top, failed_too);
  return !failed && !failed_too && is_beneath(inner.string(), outer.string());
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

// The digest over the lines of files, which are added in the order of their names.
class FilesDigest {
 public:
  void add(std::string_view mode, const std::string& hash, std::string_view name) {
    digest_.update(fmt::format("{} {} {}", mode, hash, name));
    digest_.update(std::string_view("\0", 1));  // names contain no NUL
  }
  std::string finish() { return "sha256:" + to_hex(digest_.finish()); }

 private:
  Sha256 digest_;
};

// Adds anything but a submodule or a folder.
void add_file(FilesDigest& digest, const std::string& top, const std::string& name) {
  const std::string path = top + "/" + name;
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return;
  std::optional<Hash> hash;
  if (S_ISLNK(status.st_mode)) {
    std::string target(4096, '\0');
    const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
    if (size >= 0) hash = sha256(std::string_view(target.data(), static_cast<std::size_t>(size)));
  } else if (S_ISREG(status.st_mode)) {
    hash = hash_of_file(path);
  }
  if (!hash) return;
  // git records only the executable bit of a file's mode.
  const char* mode = S_ISLNK(status.st_mode) ? "120000" : (status.st_mode & S_IXUSR) != 0 ? "100755" : "100644";
  digest.add(mode, to_hex(*hash), name);
}

// Returns whether the path is a file of EvidenceStore or `muniment evidence export`, a copy of the ledger.
bool is_evidence_file(std::string_view name) {
  constexpr std::string_view folder = ".beads/evidence/";
  const std::size_t end = name.rfind('/') + 1;  // 0: in the top folder
  const std::string_view within = name.substr(0, end);
  return name.ends_with(".json") && within.ends_with(folder) &&
         (within.size() == folder.size() || within[within.size() - folder.size() - 1] == '/');
}

// Computes digests of commits, and the hash of each blob once.
class CommitDigests {
 public:
  CommitDigests(const CommitView& view) : view_(view) {}

  std::string digest_of(const std::string& commit) {
    // "MODE TYPE ID\tPATH"
    std::map<std::string, std::string> files;  // by name: mode and id
    std::vector<std::string> ids;
    for (const std::string& entry :
         split_at_nul(view_.git({"ls-tree", "-r", "-z", "--full-tree", commit}).value_or(""))) {
      const std::size_t id_at = entry.find(' ', 7) + 1, tab = entry.find('\t');
      if (id_at == 0 || tab == std::string::npos || entry.compare(7, 4, "blob") != 0) continue;
      const std::string name = entry.substr(tab + 1), id = entry.substr(id_at, tab - id_at);
      if (is_evidence_file(name)) continue;
      files.emplace(name, entry.substr(0, 7) + id);
      if (hashes_.try_emplace(id).second) ids.push_back(id);
    }
    view_.each_blob(ids, [&](std::size_t at, std::string_view content) { hashes_[ids[at]] = to_hex(sha256(content)); });
    FilesDigest digest;
    for (const auto& [name, file] : files) digest.add(file.substr(0, 6), hashes_[file.substr(7)], name);
    return digest.finish();
  }

 private:
  const CommitView& view_;
  std::map<std::string, std::string> hashes_;  // SHA-256 by id
};

}  // namespace

std::optional<std::string> commit_with_digest(const std::string& folder, const std::string& digest) {
  if (digest.find(" v3 ") == std::string::npos) return std::nullopt;
  const CommitView view(folder, "HEAD");
  if (!view.made()) return std::nullopt;
  CommitDigests digests(view);
  std::istringstream commits(
      git_output(folder, {"rev-list", "--all", "--reflog", "HEAD", fmt::format("--max-count={}", commits_searched_max)})
          .value_or(""));
  for (std::string commit; std::getline(commits, commit);) {
    if (digest.ends_with(" " + digests.digest_of(commit))) return commit;
  }
  return std::nullopt;
}

std::string tree_digest(const std::string& folder) {
  const auto top_line = git_output(folder, {"rev-parse", "--show-toplevel"});
  if (!top_line) return {};
  const std::string top = trimmed(*top_line);
  if (!lies_in(folder, top)) return {};
  const auto commit = git_output(folder, {"rev-parse", "--verify", "-q", "HEAD"});
  const auto listed = git_output(top, {"ls-files", "-z", "--cached", "--others", "--exclude-standard"});
  if (!listed) return {};
  std::vector<std::string> names = split_at_nul(*listed);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  FilesDigest digest;
  for (const std::string& name : names) {
    if (!is_evidence_file(name)) add_file(digest, top, name);
  }
  return fmt::format("git:{} v3 root:{} {}", commit ? trimmed(*commit) : "none",
                     to_hex(sha256(top)).substr(0, root_digits), digest.finish());
}

void write_working_tree(json::Writer& params) {
  std::error_code failed;
  const std::string folder = std::filesystem::current_path(failed).string();
  if (failed) return;
  params.member("folder", folder);
  if (const std::string digest = tree_digest(folder); !digest.empty()) params.member("tree_digest", digest);
}

}  // namespace muniment::cli
