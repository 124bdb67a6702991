#include "base/files/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "base/crypto/sha256.hpp"
#include "base/text.hpp"

namespace muniment {
namespace {

Errc code_of(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR: return Errc::not_found;
    case EACCES:
    case EPERM:
    case EROFS: return Errc::denied;
    case EEXIST:
    case EISDIR: return Errc::conflict;
    case ENAMETOOLONG: return Errc::invalid_argument;
    case ENOSPC:
    case EDQUOT: return Errc::over_budget;
    case ELOOP:                        // a symbolic link where none is followed
    case EXDEV:                        // a path that leaves its root
    case ENXIO: return Errc::corrupt;  // a FIFO or a socket
    case EMFILE:
    case ENFILE:
    case ENOMEM: return Errc::unavailable;
    default: return Errc::system_error;
  }
}

Result<RegularFile> require_regular(Fd fd, std::string_view path) {
  struct stat about {};
  if (::fstat(fd.get(), &about) != 0) return file_error("reading", path, errno);
  if (!S_ISREG(about.st_mode)) {
    return Error(Errc::corrupt, fmt::format("reading {}: not a regular file", path));
  }
  return RegularFile{std::move(fd), about.st_size};
}

// Maps corrupt to the caller's mistake, because the caller chose the path and Muniment does not guarantee its content.
Error as_named(Error error) {
  if (error.code == Errc::corrupt) error.code = Errc::invalid_argument;
  return error;
}

Error no_file_but_a_folder(std::string_view path) {
  return {Errc::invalid_argument, fmt::format("reading {}: is a folder; a file is required", path)};
}

Error over_limit(std::string_view path, std::size_t bytes_max) {
  Error error(Errc::too_large, fmt::format("reading {}: more than {} bytes, the limit", path, grouped(bytes_max)));
  error.limit = static_cast<std::int64_t>(bytes_max);
  return error;
}

Result<std::string> read_whole(const RegularFile& file, const std::string& path, std::size_t bytes_max) {
  // Reads one byte more than announced, to detect a file that grows or is in /proc.
  std::string bytes;
  std::size_t wanted = static_cast<std::size_t>(file.size) + 1;
  while (bytes.size() <= bytes_max) {
    ASSIGN_OR_RETURN(const std::string part, read_at(file.fd, static_cast<std::int64_t>(bytes.size()),
                                                     std::min(wanted, bytes_max + 1 - bytes.size())));
    if (part.empty()) return bytes;
    bytes += part;
    wanted = 65'536;
  }
  return over_limit(path, bytes_max);
}

// Returns the part of an absolute path below `folder`, in the folder's own spelling or with its links resolved.
std::optional<std::string> path_below(const std::string& folder, std::string_view path) {
  const std::unique_ptr<char, decltype(&::free)> resolved(::realpath(folder.c_str(), nullptr), ::free);
  for (std::string prefix : {folder, std::string(resolved ? resolved.get() : "")}) {
    if (prefix.empty()) continue;
    if (!prefix.ends_with('/')) prefix += '/';
    if (path.starts_with(prefix)) return std::string(path.substr(prefix.size()));
  }
  return std::nullopt;
}

// Returns the absolute path of an open file as the kernel reports it.
std::string name_of_open(const Fd& file) {
  std::string name(PATH_MAX, '\0');
  const ssize_t size = ::readlink(fmt::format("/proc/self/fd/{}", file.get()).c_str(), name.data(), name.size());
  name.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return name;
}

// The name is in the same folder, so that rename is atomic, and random, so that it is unique.
std::string temporary_name(const std::string& name) {
  std::array<std::uint8_t, 8> random{};
  random_bytes(random.data(), random.size());
  return fmt::format(".{}.{}.tmp", name, to_hex({reinterpret_cast<const char*>(random.data()), random.size()}));
}

Status write_and_rename(const Fd& folder, const std::string& temporary, const std::string& name, std::string_view bytes,
                        mode_t mode, const std::string& path) {
  Fd file(::openat(folder.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!file.open()) return file_error("creating a file for", path, errno);
  RETURN_IF_ERROR(write_all(file.get(), bytes, path));
  if (::fsync(file.get()) != 0) return file_error("syncing", path, errno);
  if (::renameat(folder.get(), temporary.c_str(), folder.get(), name.c_str()) != 0) {
    return file_error("naming", path, errno);
  }
  return success();
}

}  // namespace

void Fd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Error file_error(std::string_view doing, std::string_view path, int error_number) {
  const char* const why = ::strerrordesc_np(error_number);
  return {code_of(error_number), fmt::format("{} {}: {}", doing, path, why != nullptr ? why : "unknown error")};
}

bool is_beneath(std::string_view path, std::string_view folder) {
  if (folder == "/") return true;
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

Time changed_at(const struct stat& status) {
  return Time{std::int64_t{status.st_ctim.tv_sec} * 1'000'000 + status.st_ctim.tv_nsec / 1'000};
}

Status check_beneath(std::string_view path) {
  const auto refuse = [&](std::string_view why) {
    return Error(Errc::invalid_argument,
                 "path \"" + std::string(path) + "\" " + std::string(why) + ". Use a plain path below its root.");
  };
  if (path.empty()) return refuse("is empty");
  if (path.find('\0') != std::string_view::npos) return refuse("contains a NUL byte");
  while (true) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return refuse("leaves its folder");
    if (slash == std::string_view::npos) return success();
    path.remove_prefix(slash + 1);
  }
}

Status write_all(int file, std::string_view bytes, std::string_view path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return file_error("writing", path, errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return success();
}

Result<Fd> open_folder(const std::string& path) {
  Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.open()) return file_error("opening the folder", path, errno);
  return folder;
}

std::string path_of(const Fd& file) { return fmt::format("/proc/self/fd/{}", file.get()); }

Result<Fd> open_beneath(const Fd& root, std::string_view path, int flags) {
  RETURN_IF_ERROR(check_beneath(path));
  const std::string text(path);
  open_how how{};
  how.flags = static_cast<decltype(how.flags)>(flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  long fd = -1;
  do {  // EAGAIN: a path component was renamed during the walk
    fd = ::syscall(SYS_openat2, root.get(), text.c_str(), &how, sizeof how);
  } while (fd < 0 && (errno == EAGAIN || errno == EINTR));
  if (fd < 0 && errno == ELOOP) {
    return Error(Errc::corrupt,
                 fmt::format("opening {}: the path contains a symbolic link, which is not permitted", path));
  }
  if (fd < 0) return file_error("opening", path, errno);
  return Fd(static_cast<int>(fd));
}

Result<RegularFile> open_regular_beneath(const Fd& root, std::string_view path) {
  ASSIGN_OR_RETURN(Fd fd, open_beneath(root, path, O_RDONLY));
  return require_regular(std::move(fd), path);
}

Result<RegularFile> open_regular(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.open()) return file_error("opening", path, errno);
  return require_regular(std::move(fd), path);
}

Result<RegularFile> open_named(const std::string& path) {
  auto file = open_regular(path);
  if (file) return file;
  struct stat about {};
  if (::stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode)) return no_file_but_a_folder(path);
  return as_named(std::move(file).error());
}

Result<std::size_t> read_into(const Fd& file, std::int64_t offset, std::string& buffer, std::string_view path) {
  std::size_t have = 0;
  while (have < buffer.size()) {
    const ssize_t got =
        ::pread(file.get(), buffer.data() + have, buffer.size() - have, offset + static_cast<off_t>(have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error("reading", path, errno);
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  return have;
}

Result<std::string> read_at(const Fd& file, std::int64_t offset, std::size_t length) {
  std::string bytes(length, '\0');
  ASSIGN_OR_RETURN(const std::size_t have, read_into(file, offset, bytes, "an open file"));
  bytes.resize(have);
  return bytes;
}

Result<std::string> read_file(const std::string& path, std::size_t bytes_max) {
  ASSIGN_OR_RETURN(const RegularFile file, open_regular(path));
  return read_whole(file, path, bytes_max);
}

Result<std::string> read_named(const std::string& path, std::size_t bytes_max) {
  ASSIGN_OR_RETURN(const RegularFile file, open_named(path));
  return read_whole(file, path, bytes_max);
}

Result<std::string> read_within(const std::vector<std::string>& folders, const std::string& excluded,
                                const std::string& path, std::size_t bytes_max) {
  const bool relative = !path.starts_with('/');
  for (const std::string& folder : folders) {
    const auto below = relative ? std::optional(path) : path_below(folder, path);
    if (!below) continue;
    const auto root = open_folder(folder);
    if (!root) {
      if (root.error().code == Errc::not_found) continue;
      return root.error();
    }
    const auto file = open_regular_beneath(*root, *below);
    if (relative && !file && file.error().code == Errc::not_found) continue;
    if (!file) return as_named(file.error());
    const std::string name = name_of_open(file->fd);
    if (name.empty() || path_below(excluded, name))
      return Error(Errc::denied, path + " is in a folder that is never read");
    return read_whole(*file, path, bytes_max);
  }
  if (relative)
    return Error(Errc::not_found, fmt::format("{} is in none of the folders {}", path, fmt::join(folders, ", ")));
  return Error(Errc::denied, fmt::format("{} is not below {}", path, fmt::join(folders, ", ")));
}

Result<std::string> read_trusted(const std::string& path, std::size_t bytes_max) {
  ASSIGN_OR_RETURN(const RegularFile file, open_named(path));
  struct stat about {};
  if (::fstat(file.fd.get(), &about) != 0) return file_error("examining", path, errno);
  if ((about.st_mode & 022) != 0)
    return Error(Errc::denied, fmt::format("other users may write {} (mode {:03o}). Run: chmod go-w {}", path,
                                           about.st_mode & 0777, path));
  return read_whole(file, path, bytes_max);
}

Result<std::string> read_input(const std::string& path, std::size_t bytes_max) {
  const Fd input(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!input.open()) return as_named(file_error("opening", path, errno));
  return read_input(input.get(), path, bytes_max);
}

Result<std::string> read_input(int descriptor, std::string_view name, std::size_t bytes_max) {
  std::string bytes;
  std::array<char, 64 * 1024> piece{};
  for (;;) {
    const ssize_t got = ::read(descriptor, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EISDIR) return no_file_but_a_folder(name);
    if (got < 0) return as_named(file_error("reading", name, errno));
    if (got == 0) return bytes;
    bytes.append(piece.data(), static_cast<std::size_t>(got));
    if (bytes.size() > bytes_max) return over_limit(name, bytes_max);
  }
}

Status write_file_durably(const std::string& path, std::string_view bytes, mode_t mode) {
  const std::size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  const std::string parent = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  ASSIGN_OR_RETURN(const Fd folder, open_folder(parent));
  const std::string temporary = temporary_name(name);
  if (auto written = write_and_rename(folder, temporary, name, bytes, mode, path); !written) {
    ::unlinkat(folder.get(), temporary.c_str(), 0);
    return written;
  }
  if (::fsync(folder.get()) != 0) return file_error("syncing the folder of", path, errno);
  return success();
}

Result<std::string> sha256_of_file(const std::string& path) {
  ASSIGN_OR_RETURN(const RegularFile file, open_named(path));
  Sha256 hash;
  std::string piece(1 << 20, '\0');
  for (std::int64_t offset = 0;;) {
    ASSIGN_OR_RETURN(const std::size_t got, read_into(file.fd, offset, piece, path));
    if (got == 0) return to_hex(hash.finish());
    hash.update(std::string_view(piece).substr(0, got));
    offset += static_cast<std::int64_t>(got);
  }
}

}  // namespace muniment
