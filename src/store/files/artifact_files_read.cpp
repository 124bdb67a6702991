// Reads artifacts, verifying each byte by a hash, and replaces damaged files.
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "base/log.hpp"
#include "base/process/failpoint.hpp"
#include "store/files/artifact_files_local.hpp"

namespace muniment::store {
namespace {

constexpr std::size_t roots_known_max = 65'536;  // about 6 MiB

Result<std::string> read_exactly(const Fd& file, std::int64_t offset, std::int64_t length, std::string_view path) {
  std::string bytes(static_cast<std::size_t>(length), '\0');
  ASSIGN_OR_RETURN(const std::size_t count, read_artifact(file, offset, bytes, path));
  if (count == bytes.size()) return bytes;
  return Error(Errc::corrupt, fmt::format("reading {}: the file ended after {} bytes", path,
                                          offset + static_cast<std::int64_t>(count)));
}

Error differs(std::string message, std::string expected, std::string actual, Difference* difference) {
  if (difference != nullptr) *difference = {std::move(expected), std::move(actual)};
  return {Errc::corrupt, std::move(message)};
}

// Compares the bytes' hash with the recorded one.
Status compare(std::string_view path, const Hash& expected, const Hash& actual, Difference* difference) {
  if (actual == expected) return success();
  return differs(fmt::format("{} does not hold the bytes that were stored", path), to_hex(expected), to_hex(actual),
                 difference);
}

}  // namespace

Result<std::size_t> read_artifact(const Fd& file, std::int64_t offset, std::string& buffer, std::string_view path) {
  if (FAILPOINT_FAILS("artifact.read_eio")) return file_error("reading", path, EIO);
  return read_into(file, offset, buffer, path);
}

// A foreign hard link would let other processes change the file later. The staging link is permitted while the event is
// in flight.
bool LocalArtifactFiles::has_own_names(const RegularFile& opened, const StoredFile& file) const {
  for (int attempt = 0; attempt < 2; ++attempt) {  // the staging name may disappear in between
    struct stat about {
    }, staged{};
    if (::fstat(opened.fd.get(), &about) != 0) return false;
    if (about.st_nlink <= 1) return true;
    const bool in_flight =
        ::fstatat(staging_.get(), file.artifact_id.text().c_str(), &staged, AT_SYMLINK_NOFOLLOW) == 0 &&
        staged.st_dev == about.st_dev && staged.st_ino == about.st_ino;
    if (in_flight) return about.st_nlink == 2;
  }
  return false;
}

// Opens the file, checks its size and its links, and reads nothing.
Result<RegularFile> LocalArtifactFiles::open_recorded(const StoredFile& file, Difference* difference) const {
  ASSIGN_OR_RETURN(RegularFile opened, open_regular_beneath(root_, file.path));
  if (opened.size != file.size_bytes) {
    return differs(fmt::format("{} is {} bytes, but {} were stored", file.path, opened.size, file.size_bytes),
                   fmt::format("{} bytes", file.size_bytes), fmt::format("{} bytes", opened.size), difference);
  }
  if (!has_own_names(opened, file)) {
    return differs(file.path + " has an additional hard link, through which its bytes can be changed", "1 name",
                   "several names", difference);
  }
  return opened;
}

Result<std::string> LocalArtifactFiles::read(const StoredFile& file, std::int64_t offset, std::int64_t length,
                                             Difference* difference) {
  if (offset < 0 || length < 0 || offset > file.size_bytes || length > file.size_bytes - offset) {
    return Error(Errc::invalid_argument,
                 fmt::format("the artifact is {} bytes and has no span at offset {} of {} bytes", file.size_bytes,
                             offset, length));
  }
  ASSIGN_OR_RETURN(const RegularFile opened, open_recorded(file, difference));
  const auto cut = [&](std::string bytes, std::int64_t from) {
    if (from == offset && std::ssize(bytes) == length) return bytes;
    return bytes.substr(static_cast<std::size_t>(offset - from), static_cast<std::size_t>(length));
  };
  if (!has_pieces(file.size_bytes) || length == file.size_bytes) {
    ASSIGN_OR_RETURN(std::string bytes, read_exactly(opened.fd, 0, file.size_bytes, file.path));
    RETURN_IF_ERROR(compare(file.path, file.hash, sha256(bytes), difference));
    return cut(std::move(bytes), 0);
  }
  const std::int64_t first = std::min(offset, file.size_bytes - 1) / piece_bytes;
  const Span pieces{
      first * piece_bytes,
      std::min(file.size_bytes, std::max((offset + length + piece_bytes - 1) / piece_bytes, first + 1) * piece_bytes)};
  ASSIGN_OR_RETURN(std::string bytes, read_exactly(opened.fd, pieces.begin, pieces.end - pieces.begin, file.path));
  ASSIGN_OR_RETURN(const std::optional<bool> fits, fits_pieces(file, first, bytes));
  if (fits == true) return cut(std::move(bytes), pieces.begin);
  // A read of the whole file shows whether the file or its pieces are damaged.
  ASSIGN_OR_RETURN(bytes, read_through(opened, file, pieces, difference));
  return cut(std::move(bytes), pieces.begin);
}

Status LocalArtifactFiles::check(const StoredFile& file, Difference* difference) {
  ASSIGN_OR_RETURN(const RegularFile opened, open_recorded(file, difference));
  RETURN_IF_ERROR(read_through(opened, file, {}, difference));
  return success();
}

Result<std::string> LocalArtifactFiles::read_hashed(std::string_view path, std::int64_t offset, std::int64_t length,
                                                    const Hash& hash, Difference* difference, const HashOf& hash_of) {
  ASSIGN_OR_RETURN(const RegularFile opened, open_regular_beneath(root_, path));
  if (offset < 0 || length < 0 || offset > opened.size || length > opened.size - offset) {
    return differs(fmt::format("{} is {} bytes, but the span is {} + {}", path, opened.size, offset, length),
                   to_hex(hash), "", difference);
  }
  ASSIGN_OR_RETURN(std::string bytes, read_exactly(opened.fd, offset, length, path));
  RETURN_IF_ERROR(compare(path, hash, hash_of ? hash_of(bytes) : sha256(bytes), difference));
  return bytes;
}

std::optional<Hash> LocalArtifactFiles::root_of(const StoredFile& file) {
  if (file.pieces_root) return file.pieces_root;
  const std::lock_guard lock(roots_mutex_);
  const auto known = roots_.find(file.artifact_id);
  return known == roots_.end() ? std::nullopt : std::optional(known->second);
}

Result<std::optional<bool>> LocalArtifactFiles::fits_pieces(const StoredFile& file, std::int64_t first,
                                                            std::string_view bytes) {
  const std::optional<Hash> root = root_of(file);
  if (!root) return std::optional<bool>();
  const std::string path = place_at(file.path).pieces_path();
  const auto opened = open_regular_beneath(root_, path);
  if (!opened && is_transient(opened.error().code)) return opened.error();
  if (!opened) return std::optional<bool>();
  PieceTree tree(file.size_bytes, *root, [&](std::int64_t offset, std::size_t length) -> Result<std::string> {
    return read_at(opened->fd, offset, length);
  });
  const auto fits = tree.fits(first, bytes, file.hash);
  return fits ? std::optional(*fits) : std::optional<bool>();
}

// Hashes the whole file and returns the requested span of the same bytes. Missing or wrong pieces are stored again.
Result<std::string> LocalArtifactFiles::read_through(const RegularFile& opened, const StoredFile& file, Span wanted,
                                                     Difference* difference) {
  PieceHasher hasher;
  std::string out;
  std::int64_t at = 0;
  RETURN_IF_ERROR(stream_file(opened.fd, file.path, [&](std::string_view bytes) {
    hasher.update(bytes);
    const std::int64_t begin = std::max(wanted.begin, at), end = std::min(wanted.end, at + std::ssize(bytes));
    if (begin < end) out += bytes.substr(static_cast<std::size_t>(begin - at), static_cast<std::size_t>(end - begin));
    at += std::ssize(bytes);
    return success();
  }));
  RETURN_IF_ERROR(compare(file.path, file.hash, hasher.finish(), difference));
  if (std::ssize(out) != wanted.end - wanted.begin)
    return Error(Errc::corrupt, file.path + " changed while it was read");
  keep_pieces(opened, file, hasher.pieces());
  return out;
}

// A failure here only slows down the read of the next slice.
void LocalArtifactFiles::keep_pieces(const RegularFile& opened, const StoredFile& file, const Pieces& pieces) {
  if (pieces.file.empty()) return;
  if (file.pieces_root && *file.pieces_root != pieces.root) {
    return log_warning("an artifact has its bytes, but its event names other pieces", {{"path", file.path}});
  }
  const Place place = place_at(file.path);
  const auto there = open_regular_beneath(root_, place.pieces_path());
  const auto held =
      there ? read_at(there->fd, 0, pieces.file.size() + 1) : Result<std::string>(Error(Errc::not_found, ""));
  const auto folder = open_beneath(root_, place.folder, O_RDONLY | O_DIRECTORY);
  if (!folder) return;
  if (!held || *held != pieces.file) {
    if (below_reserve()) return;
    Status put = put_pieces(*folder, place, pieces);
    if (put) put = sync_folder(*folder, place.folder);
    if (!put)
      log_warning("the pieces of an artifact cannot be stored", {{"path", file.path}, {"error", put.error().message}});
  }
  // If the file was erased meanwhile, its pieces must be removed too.
  struct stat about {};
  if (::fstat(opened.fd.get(), &about) != 0 || about.st_nlink == 0) {
    ::unlinkat(folder->get(), place.pieces_name().c_str(), 0);
    return;
  }
  if (file.pieces_root) return;
  const std::lock_guard lock(roots_mutex_);
  if (roots_.size() >= roots_known_max) roots_.clear();
  roots_.insert_or_assign(file.artifact_id, pieces.root);
}

Result<bool> LocalArtifactFiles::repair(const StoredFile& recorded, std::string_view source_file) {
  RETURN_IF_ERROR(check_beneath(recorded.path));
  if (recorded.path.find('/') == std::string::npos)
    return Error(Errc::invalid_argument, "an artifact's path has a folder");
  const Fd source(::open(std::string(source_file).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!source.open()) return file_error("opening", source_file, errno);
  struct stat about {};
  if (::fstat(source.get(), &about) != 0 || !S_ISREG(about.st_mode)) {
    return Error(Errc::invalid_argument, std::string(source_file) + " is not a regular file");
  }
  const bool damaged = !check(recorded, nullptr).ok();
  std::optional<UnnamedFile> copy;
  if (damaged) {
    RETURN_IF_ERROR(check_room(about.st_size, about.st_size));
    ASSIGN_OR_RETURN(copy, new_file());
  }
  Sha256 hash;
  RETURN_IF_ERROR(stream_file(source, source_file, [&](std::string_view bytes) {
    hash.update(bytes);
    return copy ? write_artifact(copy->fd(), bytes) : success();
  }));
  if (hash.finish() != recorded.hash) {
    return Error(Errc::invalid_argument,
                 fmt::format("{} is not the missing file: its SHA-256 is not {}. Nothing was changed.", source_file,
                             to_hex(recorded.hash)));
  }
  if (copy) RETURN_IF_ERROR(put_in_place(*copy, recorded.path));
  return damaged;
}

// Replaces an existing file in one step. The temporary name is that of an artifact without a row, so the next start
// removes it after a crash.
Status LocalArtifactFiles::put_in_place(const UnnamedFile& file, std::string_view path) {
  const Place place = place_at(path);
  RETURN_IF_ERROR(sync_file(file.fd(), path));
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
