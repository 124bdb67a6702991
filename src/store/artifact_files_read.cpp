// Reading artifacts: spans, whole hashes, and putting a damaged file back.
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "base/failpoint.hpp"
#include "store/artifact_files_local.hpp"

namespace muniment::store {
namespace {

constexpr std::size_t hash_buffer_bytes = 256 * 1024;

Result<std::size_t> read_artifact(const Fd& file, std::int64_t offset, std::string& buffer, std::string_view path) {
  if (FAILPOINT_FAILS("artifact.read_eio")) return file_error("reading", path, EIO);
  return read_into(file, offset, buffer, path);
}

// Hands the whole file to `take`, piece by piece; answers how many bytes there were.
template <typename Take>
Result<std::int64_t> stream_file(const Fd& file, std::string_view path, Take take) {
  ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  std::string buffer(hash_buffer_bytes, '\0');
  std::int64_t offset = 0;
  while (true) {
    ASSIGN_OR_RETURN(const std::size_t count, read_artifact(file, offset, buffer, path));
    if (count == 0) return offset;
    RETURN_IF_ERROR(take(std::string_view(buffer).substr(0, count)));
    offset += static_cast<std::int64_t>(count);
  }
}

}  // namespace

Result<std::string> LocalArtifactFiles::read(std::string_view path, std::int64_t offset, std::int64_t length) {
  if (offset < 0 || length < 0) {
    return Error(Errc::invalid_argument, fmt::format("a span starts and ends at 0 or later, not at {} + {}", offset, length));
  }
  ASSIGN_OR_RETURN(const RegularFile file, open_regular_beneath(root_, path));
  if (offset > file.size || length > file.size - offset) {
    return Error(Errc::corrupt, fmt::format("reading {}: the file is {} bytes, the span is {} + {}", path, file.size, offset, length));
  }
  std::string bytes(static_cast<std::size_t>(length), '\0');
  ASSIGN_OR_RETURN(const std::size_t count, read_artifact(file.fd, offset, bytes, path));
  if (count < bytes.size()) {
    return Error(Errc::corrupt, fmt::format("reading {}: the file ended after {} bytes", path, offset + static_cast<std::int64_t>(count)));
  }
  return bytes;
}

Result<std::int64_t> LocalArtifactFiles::size(std::string_view path) {
  ASSIGN_OR_RETURN(const RegularFile file, open_regular_beneath(root_, path));
  return file.size;
}

Result<Hash> LocalArtifactFiles::hash(std::string_view path, std::int64_t* size_out) {
  ASSIGN_OR_RETURN(const RegularFile file, open_regular_beneath(root_, path));
  Sha256 hash;
  ASSIGN_OR_RETURN(const std::int64_t size, stream_file(file.fd, path, [&](std::string_view bytes) {
                     hash.update(bytes);
                     return success();
                   }));
  if (size_out != nullptr) *size_out = size;
  return hash.finish();
}

Status LocalArtifactFiles::repair(std::string_view path, std::string_view source_file, const Hash& expected) {
  RETURN_IF_ERROR(check_beneath(path));
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return Error(Errc::invalid_argument, "an artifact's path has a folder");
  const Place place{std::string(path.substr(0, slash)), std::string(path.substr(slash + 1))};

  const Fd source(::open(std::string(source_file).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!source.open()) return file_error("opening", source_file, errno);
  struct stat about {};
  if (::fstat(source.get(), &about) != 0 || !S_ISREG(about.st_mode)) {
    return Error(Errc::invalid_argument, std::string(source_file) + " is not a regular file");
  }
  RETURN_IF_ERROR(check_room(about.st_size));
  ASSIGN_OR_RETURN(const UnnamedFile file, new_file());
  Sha256 hash;
  ASSIGN_OR_RETURN([[maybe_unused]] const std::int64_t size,
                   stream_file(source, source_file, [&](std::string_view bytes) {
                     hash.update(bytes);
                     return write_artifact(file.fd(), bytes);
                   }));
  if (hash.finish() != expected) {
    return Error(Errc::invalid_argument, fmt::format("{} is not the file that is missing: its SHA-256 is not {}. Nothing was changed.",
                                                     source_file, to_hex(expected)));
  }
  RETURN_IF_ERROR(sync_file(file.fd(), path));

  // What stands in the place, if anything, is replaced in one step. The name in between is that of
  // an artifact that nobody knows: should we die here, the next start takes it away.
  ASSIGN_OR_RETURN(const Fd folder, folders_.open(place.folder));
  const std::string between = make_uuid_v8(std::string(path) + "#repair").text();
  ::unlinkat(staging_.get(), between.c_str(), 0);
  RETURN_IF_ERROR(file.link(staging_.get(), between));
  if (::renameat(staging_.get(), between.c_str(), folder.get(), place.name.c_str()) != 0) {
    const int failed = errno;
    ::unlinkat(staging_.get(), between.c_str(), 0);
    return file_error("putting back", path, failed);
  }
  return sync_folder(folder, place.folder);
}

}  // namespace muniment::store
