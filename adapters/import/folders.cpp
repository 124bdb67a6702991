#include "adapters/import/folders.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/files/file.hpp"

namespace muniment::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view trace_extensions[] = {".jsonl", ".json", ".traj", ".ndjson"};

struct CloseDirectory {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

bool may_be_trace(const std::string& path) {
  return std::ranges::find(trace_extensions, fs::path(path).extension()) != std::end(trace_extensions);
}

void skip(const TraceWalk& walk, const std::string& path, std::string_view why) {
  if (walk.skipped) walk.skipped(path, why);
}

// Takes a file if it may be a trace, and adds a folder to those that are still to be read.
void take(const TraceWalk& walk, const std::string& path, std::vector<std::string>& folders,
          std::vector<std::string>& found) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return skip(walk, path, std::strerror(errno));
  if (S_ISDIR(status.st_mode)) return folders.push_back(path);
  if (!may_be_trace(path)) return;
  if (S_ISLNK(status.st_mode)) return skip(walk, path, "links are not followed");
  if (!S_ISREG(status.st_mode)) return skip(walk, path, "it is not a regular file");
  if (::access(path.c_str(), R_OK) != 0) return skip(walk, path, std::strerror(errno));
  found.push_back(path);
}

}  // namespace

Status find_traces(const std::string& folder, const TraceWalk& walk, std::vector<std::string>& found) {
  const auto first = static_cast<std::ptrdiff_t>(found.size());
  std::vector<std::string> folders{folder};
  while (!folders.empty()) {
    const std::string at = folders.back();
    folders.pop_back();
    const int descriptor = ::open(at.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | (at == folder ? 0 : O_NOFOLLOW));
    const std::unique_ptr<DIR, CloseDirectory> open(descriptor < 0 ? nullptr : ::fdopendir(descriptor));
    if (!open) {
      skip(walk, at, std::strerror(errno));
      continue;
    }
    if (walk.entered) RETURN_IF_ERROR(walk.entered(descriptor, at));
    while (const dirent* const entry = ::readdir(open.get())) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") take(walk, (fs::path(at) / name).string(), folders, found);
    }
  }
  std::sort(found.begin() + first, found.end());
  return success();
}

std::vector<std::string> agent_folders(const std::string& home) {
  const auto below = [&](const char* variable, std::string_view name) {
    const char* const set = variable == nullptr ? nullptr : std::getenv(variable);
    return set != nullptr && *set != '\0' ? fs::path(set) : fs::path(home) / name;
  };
  std::vector<std::string> folders;
  for (const fs::path& folder :
       {below("CLAUDE_CONFIG_DIR", ".claude") / "projects", below("CODEX_HOME", ".codex") / "sessions",
        below("CODEX_HOME", ".codex") / "archived_sessions", below(nullptr, ".gemini") / "tmp"}) {
    std::error_code unknown;
    if (fs::is_directory(folder, unknown)) folders.push_back(folder.string());
  }
  return folders;
}

}  // namespace muniment::cli
