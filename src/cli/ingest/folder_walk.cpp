#include "cli/ingest/folder_walk.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

namespace muniment::cli {
namespace {

constexpr std::size_t levels_max = 200;  // each level keeps a descriptor open
constexpr std::size_t ignore_file_bytes_max = 1 << 20;

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

// The rules of a .gitignore and its folder.
struct RulesHere {
  IgnoreRules rules;
  std::string above;  // prefix of a walked path relative to the folder of the rules: "docs/" if the walk began below it
  std::size_t cut = 0;  // length of the prefix to remove from a walked path
};

struct Level {
  std::unique_ptr<DIR, CloseFolder> folder;
  std::string path;       // "" or "a/b/"
  bool included = false;  // the whole folder matches --include
  bool has_rules = false;
  dev_t device = 0;
  ino_t inode = 0;
};

class Walk {
 public:
  Walk(const WalkOptions& options, const WalkVisitor& visitor) : options_(options), visitor_(visitor) {}

  Status run(const std::string& root) {
    ASSIGN_OR_RETURN(Fd folder, open_folder(root));
    if (options_.ignore_files) read_rules_above(root);
    if (Status entered = enter(std::move(folder), "", options_.include.empty()); !entered) return entered;
    while (!levels_.empty()) {
      errno = 0;
      const dirent* const entry = ::readdir(levels_.back().folder.get());
      if (entry == nullptr) {
        if (errno != 0) visitor_.skipped(shown(levels_.back().path), std::strerror(errno));
        leave();
        continue;
      }
      RETURN_IF_ERROR(meet(entry->d_name, entry->d_type));
    }
    return success();
  }

 private:
  static std::string shown(const std::string& path) { return path.empty() ? "." : path; }

  Status enter(Fd folder, std::string path, bool included) {
    struct stat status {};
    if (::fstat(folder.get(), &status) != 0) return file_error("reading", shown(path), errno);
    // A folder can be its own ancestor only through a mount.
    const bool loop = std::ranges::any_of(
        levels_, [&](const Level& level) { return level.device == status.st_dev && level.inode == status.st_ino; });
    if (loop || levels_.size() >= levels_max) {
      visitor_.skipped(path, loop ? "folder contains itself" : "folders nested too deeply");
      return success();
    }
    if (visitor_.entered) RETURN_IF_ERROR(visitor_.entered(folder.get(), shown(path)));
    Level level;
    level.device = status.st_dev;
    level.inode = status.st_ino;
    level.folder.reset(::fdopendir(folder.get()));
    if (!level.folder) return file_error("reading", shown(path), errno);
    folder.release();
    level.included = included;
    level.has_rules = options_.ignore_files && read_rules(::dirfd(level.folder.get()), path);
    level.path = std::move(path);
    levels_.push_back(std::move(level));
    return success();
  }

  void leave() {
    if (levels_.back().has_rules) rules_.pop_back();
    levels_.pop_back();
  }

  bool read_rules(int folder, const std::string& path) {
    const Fd file(::openat(folder, ".gitignore", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat status {};
    if (!file.open() || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
    const auto text = read_at(file, 0, ignore_file_bytes_max + 1);
    if (!text || text->size() > ignore_file_bytes_max) {
      visitor_.skipped(path + ".gitignore", text ? "rules larger than 1 MiB" : "unreadable");
      return false;
    }
    rules_.push_back({IgnoreRules(*text), "", path.size()});
    return true;
  }

  // If the walk begins inside a repository, the rules of the parent folders apply too.
  void read_rules_above(const std::string& root) {
    namespace fs = std::filesystem;
    std::error_code failed;
    fs::path folder = fs::canonical(root, failed);
    std::vector<fs::path> above;
    while (!failed && !fs::exists(folder / ".git", failed)) {
      if (folder == folder.parent_path()) return;
      folder = folder.parent_path();
      above.push_back(folder);
    }
    if (failed) return;
    const fs::path whole = fs::canonical(root, failed);
    std::reverse(above.begin(), above.end());
    for (const fs::path& one : above) {
      const auto opened = open_folder(one.string());
      if (opened && read_rules(opened->get(), "")) rules_.back().above = whole.lexically_relative(one).string() + "/";
    }
  }

  bool is_ignored(const std::string& name, const std::string& path, bool folder) const {
    if (name == ".git" || (!options_.hidden && name.starts_with('.'))) return true;
    if (options_.exclude.verdict(path, folder) == Verdict::ignored) return true;
    for (auto here = rules_.rbegin(); here != rules_.rend(); ++here) {
      const Verdict verdict = here->above.empty()
                                  ? here->rules.verdict(std::string_view(path).substr(here->cut), folder)
                                  : here->rules.verdict(here->above + path, folder);
      if (verdict != Verdict::silent) return verdict == Verdict::ignored;
    }
    return false;
  }

  Status meet(const std::string& name, unsigned char type) {
    if (name == "." || name == "..") return success();
    const int folder = ::dirfd(levels_.back().folder.get());
    const std::string path = levels_.back().path + name;
    if (type == DT_UNKNOWN) {  // some file systems do not report the type
      struct stat status {};
      if (::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
        return success();  // removed during the walk
      type = S_ISDIR(status.st_mode)   ? DT_DIR
             : S_ISREG(status.st_mode) ? DT_REG
             : S_ISLNK(status.st_mode) ? DT_LNK
                                       : DT_CHR;
    }
    if (is_ignored(name, path, type == DT_DIR)) {
      visitor_.ignored();
      return success();
    }
    const bool included = levels_.back().included || options_.include.verdict(path, type == DT_DIR) == Verdict::ignored;
    if (type == DT_DIR) return descend(folder, name, path, included);
    if (!included) {
      visitor_.ignored();
      return success();
    }
    if (type == DT_REG) return visitor_.file({folder, name, path});
    visitor_.skipped(path, type == DT_LNK ? "a symbolic link; links are not followed" : "neither file nor folder");
    return success();
  }

  Status descend(int parent, const std::string& name, const std::string& path, bool included) {
    Fd folder(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (folder.open()) return enter(std::move(folder), path + "/", included);
    if (errno != ENOENT) visitor_.skipped(path + "/", std::strerror(errno));
    return success();
  }

  const WalkOptions& options_;
  const WalkVisitor& visitor_;
  std::deque<Level> levels_;
  std::deque<RulesHere> rules_;  // the deepest last; it has precedence
};

}  // namespace

Status walk_folder(const std::string& root, const WalkOptions& options, const WalkVisitor& visitor) {
  return Walk(options, visitor).run(root);
}

}  // namespace muniment::cli
