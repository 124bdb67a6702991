#include "verify/files/artifact_root.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace muniment::verify {
namespace {

constexpr std::size_t block_bytes = 256 * 1024;

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

Error failure(const std::string& path, int error) {
  const bool absent = error == ENOENT || error == ENOTDIR;
  const bool astray = error == ELOOP || error == EXDEV;  // a symbolic link, or a path outside the root
  const Errc code = absent ? Errc::not_found : astray ? Errc::corrupt : Errc::unavailable;
  return {code, fmt::format("{}: {}", path, std::strerror(error))};
}

Result<Descriptor> open_below(int root, const std::string& path, struct stat& status) {
  open_how how{};
  how.flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  Descriptor file(static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how)));
  if (file.number() < 0) return failure(path, errno);
  if (::fstat(file.number(), &status) != 0) return failure(path, errno);
  if (!S_ISREG(status.st_mode)) return Error(Errc::corrupt, path + ": not a regular file");
  return file;
}

// Passes each block to `take`.
template <typename Take>
Status stream(const Descriptor& file, const std::string& path, Take take) {
  std::string block(block_bytes, '\0');
  while (true) {
    const ssize_t got = ::read(file.number(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failure(path, errno);
    if (got == 0) return success();
    take(std::string_view(block).substr(0, static_cast<std::size_t>(got)));
  }
}

}  // namespace

Result<ArtifactRoot> ArtifactRoot::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return Error(Errc::not_found, fmt::format("artifact root {}: {}", path, std::strerror(errno)));
  return ArtifactRoot(path, descriptor);
}

ArtifactRoot::ArtifactRoot(ArtifactRoot&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

ArtifactRoot::~ArtifactRoot() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<FileFacts> ArtifactRoot::facts(const std::string& relative, std::int64_t size_wanted) const {
  struct stat status {};
  ASSIGN_OR_RETURN(const Descriptor file, open_below(descriptor_, relative, status));
  FileFacts facts;
  if (status.st_size != size_wanted) {
    facts.size_bytes = status.st_size;
    facts.was_read = false;
    return facts;
  }
  ::posix_fadvise(file.number(), 0, 0, POSIX_FADV_SEQUENTIAL);
  PieceDigest digest;
  RETURN_IF_ERROR(stream(file, relative, [&](std::string_view block) {
    digest.update(block);
    facts.size_bytes += static_cast<std::int64_t>(block.size());
  }));
  facts.hash = digest.finish();
  if (facts.size_bytes > unpieced_bytes_max) facts.pieces = digest.tree();
  return facts;
}

Result<std::string> ArtifactRoot::read(const std::string& relative, std::int64_t bytes_max) const {
  struct stat status {};
  ASSIGN_OR_RETURN(const Descriptor file, open_below(descriptor_, relative, status));
  if (status.st_size > bytes_max) return Error(Errc::too_large, relative + ": too large");
  std::string bytes;
  RETURN_IF_ERROR(stream(file, relative, [&](std::string_view block) { bytes += block; }));
  return bytes;
}

Result<std::string> ArtifactRoot::read_span(const std::string& relative, std::int64_t start, std::int64_t size) const {
  struct stat status {};
  ASSIGN_OR_RETURN(const Descriptor file, open_below(descriptor_, relative, status));
  start = std::max<std::int64_t>(start, 0);
  size = std::clamp<std::int64_t>(size, 0, std::max<std::int64_t>(status.st_size - start, 0));
  std::string bytes(static_cast<std::size_t>(size), '\0');
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got =
        ::pread(file.number(), bytes.data() + have, bytes.size() - have, start + static_cast<std::int64_t>(have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failure(relative, errno);
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

bool ArtifactRoot::exists(const std::string& relative) const {
  struct stat status {};
  return ::fstatat(descriptor_, relative.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

bool ArtifactRoot::same_file(const std::string& relative, const std::string& other) const {
  struct stat one {
  }, two{};
  return ::fstatat(descriptor_, relative.c_str(), &one, AT_SYMLINK_NOFOLLOW) == 0 &&
         ::fstatat(descriptor_, other.c_str(), &two, AT_SYMLINK_NOFOLLOW) == 0 && one.st_dev == two.st_dev &&
         one.st_ino == two.st_ino;
}

bool ArtifactRoot::has_other_names(const std::string& relative, const std::string& own) const {
  for (int attempt = 0; attempt < 2; ++attempt) {  // the staging link may appear between the two calls
    struct stat status {};
    if (::fstatat(descriptor_, relative.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 || status.st_nlink <= 1)
      return false;
    if (same_file(relative, own)) return status.st_nlink > 2;
  }
  return true;
}

}  // namespace muniment::verify
