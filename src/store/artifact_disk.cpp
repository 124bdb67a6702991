#include "store/artifact_disk.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/failpoint.hpp"

namespace muniment::store {
namespace {

constexpr std::size_t durable_folders_max = 65'536;  // about 8 MiB of paths; then the cache starts anew
constexpr mode_t folder_mode = 0700;
constexpr mode_t file_mode = 0400;  // an artifact is never written again

}  // namespace

Error disk_error(std::string_view doing, std::string_view path, int error_number) {
  Errc code = Errc::system_error;
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      code = Errc::not_found;
      break;
    case ENOSPC:
    case EDQUOT:
      code = Errc::over_budget;
      break;
    case ELOOP:
    case EXDEV:
    case ENXIO:
    case EISDIR:
      code = Errc::corrupt;
      break;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      code = Errc::unavailable;
      break;
    case EEXIST:
      code = Errc::conflict;
      break;
    default:
      break;
  }
  std::string message(doing);
  message.append(" ").append(path).append(": ");
  if (error_number == ELOOP) {
    message += "there is a symbolic link in the path; artifacts are never followed through one";
  } else {
    message += ::strerrordesc_np(error_number) != nullptr ? ::strerrordesc_np(error_number) : "unknown error";
  }
  return Error(code, std::move(message));
}

Status check_beneath(std::string_view path) {
  const auto refuse = [&](std::string_view why) {
    return Error(Errc::invalid_argument,
                 "path \"" + std::string(path) + "\" " + std::string(why) + "; use the path that artifact.put answered");
  };
  if (path.empty()) return refuse("is empty");
  if (path.find('\0') != std::string_view::npos) return refuse("holds a NUL");
  while (true) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return refuse("leaves its folder");
    if (slash == std::string_view::npos) return success();
    path.remove_prefix(slash + 1);
  }
}

Result<OwnedFd> open_beneath(int root, std::string_view path, int flags) {
  RETURN_IF_ERROR(check_beneath(path));
  const std::string text(path);
  open_how how{};
  how.flags = static_cast<decltype(how.flags)>(flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  long fd = -1;
  do {  // EAGAIN: something was renamed while the path was walked
    fd = ::syscall(SYS_openat2, root, text.c_str(), &how, sizeof how);
  } while (fd < 0 && (errno == EAGAIN || errno == EINTR));
  if (fd < 0) return disk_error("opening", path, errno);
  return OwnedFd(static_cast<int>(fd));
}

Result<OpenFile> open_regular(int root, std::string_view path) {
  ASSIGN_OR_RETURN(OwnedFd fd, open_beneath(root, path, O_RDONLY));
  struct stat about {};
  if (::fstat(fd.get(), &about) != 0) return disk_error("reading", path, errno);
  if (!S_ISREG(about.st_mode)) {
    return Error(Errc::corrupt, "reading " + std::string(path) + ": not a regular file");
  }
  return OpenFile{std::move(fd), static_cast<std::int64_t>(about.st_size)};
}

Status write_all(int fd, std::string_view bytes) {
  if (FAILPOINT_FAILS("artifact.write_eio")) return disk_error("writing", "an artifact", EIO);
  if (FAILPOINT_FAILS("artifact.write_enospc")) return disk_error("writing", "an artifact", ENOSPC);
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return disk_error("writing", "an artifact", errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return success();
}

Status sync_file(int fd, std::string_view path) {
  if (FAILPOINT_FAILS("artifact.fsync_eio")) return disk_error("syncing", path, EIO);
  if (::fsync(fd) != 0) return disk_error("syncing", path, errno);
  return success();
}

Status sync_folder([[maybe_unused]] const OwnedFd& folder, [[maybe_unused]] std::string_view path) {
#ifndef MUNIMENT_PLANTED_BUG_no_folder_fsync
  if (FAILPOINT_FAILS("artifact.folder_fsync_eio")) return disk_error("syncing the folder", path, EIO);
  if (::fsync(folder.get()) != 0) return disk_error("syncing the folder", path, errno);
#endif
  return success();
}

bool Folders::known(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return durable_.contains(path);
}

Result<OwnedFd> Folders::open(const std::string& path) {
  if (known(path)) {
    auto folder = open_beneath(root_, path, O_RDONLY | O_DIRECTORY);
    if (folder || folder.error().code != Errc::not_found) return folder;
    const std::lock_guard lock(mutex_);  // somebody removed it: trust nothing that was known
    durable_.clear();
  }
  return make(path);
}

Result<OwnedFd> Folders::make(const std::string& path) {
  RETURN_IF_ERROR(check_beneath(path));
  OwnedFd parent(::openat(root_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent.open()) return disk_error("opening the folder of", path, errno);
  std::size_t begin = 0;
  while (begin < path.size()) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string so_far = path.substr(0, end);
    const std::string name = path.substr(begin, end - begin);
    const bool is_durable = known(so_far);
    if (!is_durable && ::mkdirat(parent.get(), name.c_str(), folder_mode) != 0 && errno != EEXIST) {
      return disk_error("making the folder", so_far, errno);
    }
    ASSIGN_OR_RETURN(OwnedFd child, open_beneath(parent.get(), name, O_RDONLY | O_DIRECTORY));
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
  if (FAILPOINT_FAILS("artifact.open_emfile")) return disk_error("opening", "a new artifact", EMFILE);
  const int fd = ::openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, file_mode);
  if (fd < 0) return disk_error("opening", "a new artifact", errno);
  return UnnamedFile(OwnedFd(fd));
}

Status UnnamedFile::link(int folder, const std::string& name) const {
  const std::string self = "/proc/self/fd/" + std::to_string(fd_.get());
  if (::linkat(AT_FDCWD, self.c_str(), folder, name.c_str(), AT_SYMLINK_FOLLOW) != 0) {
    return disk_error("naming", name, errno);
  }
  return success();
}

}  // namespace muniment::store
