// Cleans up after a crash: each staging name identifies a put that was in progress.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "store/files/artifact_files_local.hpp"

namespace muniment::store {
namespace {

// Calls `visit(name)` for every entry of the folder except . and ..; it may remove the entry.
template <typename Visit>
Status for_each_entry(int folder, std::string_view path, Visit visit) {
  const int copy = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return file_error("listing", path, errno);
  DIR* listing = ::fdopendir(copy);
  if (listing == nullptr) {
    ::close(copy);
    return file_error("listing", path, errno);
  }
  Status visited = success();
  errno = 0;
  while (visited.ok()) {
    const dirent* entry = ::readdir(listing);
    if (entry == nullptr) break;
    const std::string name = entry->d_name;
    if (name != "." && name != "..") visited = visit(name);
    errno = 0;
  }
  const int failed = errno;
  ::closedir(listing);
  if (visited.ok() && failed != 0) return file_error("listing", path, failed);
  return visited;
}

}  // namespace

Status LocalArtifactFiles::sweep_staging(const std::function<Result<bool>(const Uuid&)>& has_row) {
  std::set<Uuid> recorded;
  std::set<Uuid> unknown;  // without an event: both names are removed
  RETURN_IF_ERROR(for_each_entry(staging_.get(), "staging", [&](const std::string& name) -> Status {
    const auto id = parse_uuid(name);
    if (!id) return success();  // a foreign file, not an artifact
    ASSIGN_OR_RETURN(const bool known, has_row(*id));
    struct stat about {};
    if (::fstatat(staging_.get(), name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) return success();
    if (!known) {
      unknown.insert(*id);
    } else if (about.st_nlink > 1) {
      recorded.insert(*id);  // a sole name stays, because it may hold acknowledged bytes
    }
    return success();
  }));
  for (const Uuid& id : recorded) ::unlinkat(staging_.get(), id.text().c_str(), 0);
  if (unknown.empty()) return success();

  RETURN_IF_ERROR(drop_places(unknown));
  for (const Uuid& id : unknown) ::unlinkat(staging_.get(), id.text().c_str(), 0);
  return success();
}

// Walks the folders, because only the name of an artifact without a row is known. Such artifacts exist only after a
// crash during a put.
Status LocalArtifactFiles::drop_places(const std::set<Uuid>& unknown) const {
  ASSIGN_OR_RETURN(const Fd runs, open_beneath(root_, "runs", O_RDONLY | O_DIRECTORY));
  return for_each_entry(runs.get(), "runs", [&](const std::string& run_name) -> Status {
    const auto run = open_beneath(runs, run_name, O_RDONLY | O_DIRECTORY);
    // Skips entries that are not folders, which the verifier reports. A folder that cannot be opened leaves the result
    // unknown.
    if (!run) return is_transient(run.error().code) ? Status(run.error()) : success();
    return for_each_entry(run->get(), run_name, [&](const std::string& step_name) -> Status {
      const auto step = open_beneath(*run, step_name, O_RDONLY | O_DIRECTORY);
      if (!step) return is_transient(step.error().code) ? Status(step.error()) : success();
      return for_each_entry(step->get(), step_name, [&](const std::string& name) -> Status {
        const auto id = parse_uuid(std::string_view(name).substr(0, 36));
        if (id && unknown.contains(*id)) ::unlinkat(step->get(), name.c_str(), 0);
        return success();
      });
    });
  });
}

}  // namespace muniment::store
