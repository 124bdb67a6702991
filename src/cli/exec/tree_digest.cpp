#include "cli/exec/tree_digest.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "base/crypto/sha256.hpp"
#include "cli/exec/git.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t root_digits = 16;  // of the hash of the tree's path

std::string trimmed(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// Returns whether the folder is the tree or lies in it. The settings of a repository may name another tree as its own.
bool lies_in(const std::string& folder, const std::string& top) {
  std::error_code failed, failed_too;
  const auto inner = std::filesystem::canonical(folder, failed);
  const auto outer = std::filesystem::canonical(top, failed_too);
  return !failed && !failed_too && std::ranges::mismatch(outer, inner).in1 == outer.end();
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

// Returns the line of one file; empty for anything but a file or a symbolic link (a submodule, a folder).
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
  // git records only the executable bit of a file's mode.
  const char* mode = S_ISLNK(status.st_mode) ? "120000" : (status.st_mode & S_IXUSR) != 0 ? "100755" : "100644";
  return fmt::format("{} {} {}", mode, to_hex(*hash), name);
}

// Returns whether the path is a file of EvidenceStore or `muniment evidence export`, a copy of the ledger.
bool is_evidence_file(std::string_view name) {
  constexpr std::string_view folder = ".beads/evidence/";
  const std::size_t end = name.rfind('/') + 1;  // 0: in the top folder
  const std::string_view within = name.substr(0, end);
  return name.ends_with(".json") && within.ends_with(folder) &&
         (within.size() == folder.size() || within[within.size() - folder.size() - 1] == '/');
}

}  // namespace

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
  Sha256 digest;
  for (const std::string& name : names) {
    if (is_evidence_file(name)) continue;
    const std::string line = line_of(top, name);
    if (line.empty()) continue;
    digest.update(line);
    digest.update(std::string_view("\0", 1));  // names contain no NUL
  }
  return fmt::format("git:{} v3 root:{} sha256:{}", commit ? trimmed(*commit) : "none",
                     to_hex(sha256(top)).substr(0, root_digits), to_hex(digest.finish()));
}

void write_working_tree(json::Writer& params) {
  std::error_code failed;
  const std::string folder = std::filesystem::current_path(failed).string();
  if (failed) return;
  params.member("folder", folder);
  if (const std::string digest = tree_digest(folder); !digest.empty()) params.member("tree_digest", digest);
}

}  // namespace muniment::cli
