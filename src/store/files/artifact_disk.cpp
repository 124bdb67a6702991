#include "store/files/artifact_disk.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/metrics.hpp"
#include "base/process/failpoint.hpp"

namespace muniment::store {
namespace {

constexpr std::size_t durable_folders_max = 65'536;  // about 8 MiB of paths; the cache is then cleared
constexpr mode_t folder_mode = 0700;
constexpr mode_t file_mode = 0400;  // an artifact is never changed

}  // namespace

Status write_artifact(int fd, std::string_view bytes) {
  if (FAILPOINT_FAILS("artifact.write_eio")) return file_error("writing", "an artifact", EIO);
  if (FAILPOINT_FAILS("artifact.write_enospc")) return file_error("writing", "an artifact", ENOSPC);
  metrics::process().artifact_written_bytes.add(static_cast<std::int64_t>(bytes.size()));
  return write_all(fd, bytes, "an artifact");
}

Status sync_file(int fd, std::string_view path) {
  if (FAILPOINT_FAILS("artifact.fsync_eio")) return file_error("syncing", path, EIO);
  const metrics::Timer timer(metrics::process().artifact_fsync_seconds);
  if (::fsync(fd) != 0) return file_error("syncing", path, errno);
  return success();
}

Status sync_folder(const Fd& folder, std::string_view path) {
  if (FAILPOINT_FAILS("artifact.folder_fsync_eio")) return file_error("syncing the folder", path, EIO);
  const metrics::Timer timer(metrics::process().artifact_fsync_seconds);
  if (::fsync(folder.get()) != 0) return file_error("syncing the folder", path, errno);
  return success();
}

std::uint64_t GroupSync::begin() const {
  const std::lock_guard lock(mutex_);
  return failures_;
}

Status GroupSync::sync(const Fd& folder, std::string_view path, std::uint64_t begun) {
  std::unique_lock lock(mutex_);
  const std::uint64_t round = gathering_;
  while (done_ < round) {
    if (running_) {
      changed_.wait(lock);
      continue;
    }
    // No sync is running: this caller syncs for its round. Later callers join the next round.
    running_ = true;
    ++gathering_;
    lock.unlock();
    Status synced = sync_folder(folder, path);
    lock.lock();
    running_ = false;
    done_ = round;
    if (!synced) {
      ++failures_;
      last_failure_ = std::move(synced).error();
    }
    changed_.notify_all();
  }
  if (failures_ != begun) return *last_failure_;
  return success();
}

bool Folders::known(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return durable_.contains(path);
}

Result<Fd> Folders::open(const std::string& path) {
  if (known(path)) {
    auto folder = open_beneath(root_, path, O_RDONLY | O_DIRECTORY);
    if (folder || folder.error().code != Errc::not_found) return folder;
    const std::lock_guard lock(mutex_);  // the folder was removed, so the cache is discarded
    durable_.clear();
  }
  return make(path);
}

Result<Fd> Folders::make(const std::string& path) {
  RETURN_IF_ERROR(check_beneath(path));
  Fd parent(::openat(root_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent.open()) return file_error("opening the folder of", path, errno);
  std::size_t begin = 0;
  while (begin < path.size()) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string so_far = path.substr(0, end);
    const std::string name = path.substr(begin, end - begin);
    const bool is_durable = known(so_far);
    if (!is_durable && ::mkdirat(parent.get(), name.c_str(), folder_mode) != 0 && errno != EEXIST) {
      return file_error("making the folder", so_far, errno);
    }
    ASSIGN_OR_RETURN(Fd child, open_beneath(parent, name, O_RDONLY | O_DIRECTORY));
    if (!is_durable) {
      RETURN_IF_ERROR(sync_folder(parent, "of " + so_far));
      const std::lock_guard lock(mutex_);
      if (durable_.size() >= durable_folders_max) durable_.clear();
      durable_.insert(so_far);
    }
    parent = std::move(child);
    begin = end + 1;
  }
  return parent;
}

Result<UnnamedFile> UnnamedFile::open(int folder) {
  if (FAILPOINT_FAILS("artifact.open_emfile")) return file_error("opening", "a new artifact", EMFILE);
  const int fd = ::openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, file_mode);
  if (fd < 0) return file_error("opening", "a new artifact", errno);
  return UnnamedFile(Fd(fd));
}

Status UnnamedFile::link(int folder, const std::string& name) const {
  const std::string self = "/proc/self/fd/" + std::to_string(fd_.get());
  if (::linkat(AT_FDCWD, self.c_str(), folder, name.c_str(), AT_SYMLINK_FOLLOW) != 0) {
    return file_error("naming", name, errno);
  }
  return success();
}

}  // namespace muniment::store
