// Implements resumable uploads: a file under uploads/ that grows by pieces and survives a client's disconnect.
// Publishing makes it an artifact without a copy.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include <fmt/format.h>

#include "base/process/failpoint.hpp"
#include "store/files/artifact_files_local.hpp"

namespace muniment::store {

// Ensures that only one request at a time uses an upload.
class LocalArtifactFiles::UploadLease {
 public:
  static Result<std::unique_ptr<UploadLease>> take(LocalArtifactFiles& files, const Uuid& id) {
    const std::lock_guard lock(files.uploads_mutex_);
    if (!files.uploads_busy_.insert(id).second) {
      return Error(Errc::conflict, "another request is writing to this upload; wait for its answer");
    }
    return std::unique_ptr<UploadLease>(new UploadLease(files, id));
  }
  ~UploadLease() {
    const std::lock_guard lock(files_.uploads_mutex_);
    files_.uploads_busy_.erase(id_);
  }
  UploadLease(const UploadLease&) = delete;

 private:
  UploadLease(LocalArtifactFiles& files, const Uuid& id) : files_(files), id_(id) {}
  LocalArtifactFiles& files_;
  const Uuid id_;
};

namespace {

Error unknown_upload() {
  return Error(Errc::not_found, "this upload is unknown, or its time limit has passed. Start again at offset 0.");
}

Result<RegularFile> open_upload(const Fd& uploads, const Uuid& id, int flags) {
  auto fd = open_beneath(uploads, id.text(), flags);
  if (!fd && fd.error().code == Errc::not_found) return unknown_upload();
  if (!fd) return std::move(fd).error();
  struct stat about {};
  if (::fstat(fd->get(), &about) != 0) return file_error("reading", "an upload", errno);
  if (!S_ISREG(about.st_mode)) return Error(Errc::corrupt, "an upload is not a regular file");
  return RegularFile{std::move(*fd), static_cast<std::int64_t>(about.st_size)};
}

}  // namespace

Result<std::int64_t> LocalArtifactFiles::upload_size(const Uuid& upload_id) {
  ASSIGN_OR_RETURN(const RegularFile file, open_upload(uploads_, upload_id, O_RDONLY));
  return file.size;
}

Status LocalArtifactFiles::upload_append(const Uuid& upload_id, std::int64_t offset, std::string_view bytes) {
  ASSIGN_OR_RETURN(const auto lease, UploadLease::take(*this, upload_id));
  RETURN_IF_ERROR(check_room(std::ssize(bytes), offset + std::ssize(bytes)));
  auto file = open_upload(uploads_, upload_id, O_WRONLY | O_APPEND);
  if (!file && file.error().code == Errc::not_found && offset == 0) {
    const int made =
        ::openat(uploads_.get(), upload_id.text().c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (made < 0) return file_error("making", "an upload", errno);
    file = RegularFile{Fd(made), 0};
  }
  if (!file) return std::move(file).error();
  if (file->size != offset) {
    Error error(Errc::conflict,
                fmt::format("the upload holds {} bytes, but the request begins at {}. Continue from {}.", file->size,
                            offset, file->size));
    error.limit = file->size;
    return error;
  }
  if (Status written = write_artifact(file->fd.get(), bytes); !written) {
    // A partial piece would make the size differ from the acknowledged bytes.
    if (::ftruncate(file->fd.get(), offset) != 0) ::unlinkat(uploads_.get(), upload_id.text().c_str(), 0);
    return written;
  }
  return success();
}

Result<StoredFile> LocalArtifactFiles::upload_publish(const Uuid& upload_id, std::string_view run_id,
                                                      std::string_view step_id, const Uuid& artifact_id,
                                                      std::string_view mime_type) {
  ASSIGN_OR_RETURN(const auto lease, UploadLease::take(*this, upload_id));
  ASSIGN_OR_RETURN(const Place place, place_of(run_id, step_id, artifact_id, mime_type));
  const std::string upload_path = "uploads/" + upload_id.text();
  // One descriptor is used from the first byte to the link, so that the hashed file is the published one.
  ASSIGN_OR_RETURN(const RegularFile file, open_upload(uploads_, upload_id, O_RDWR));
  PieceHasher hasher;
  ASSIGN_OR_RETURN(const std::int64_t size, stream_file(file.fd, upload_path, [&](std::string_view bytes) {
                     hasher.update(bytes);
                     return success();
                   }));
  StoredFile stored{artifact_id, place.path(), hasher.finish(), size};
  const Pieces pieces = hasher.pieces();
  if (has_pieces(size)) stored.pieces_root = pieces.root;
  if (Status synced = sync_file(file.fd.get(), upload_path); !synced) {
    // The kernel may have dropped pages that it now reports as clean, so the data on disk cannot be trusted.
    ::unlinkat(uploads_.get(), upload_id.text().c_str(), 0);
    return std::move(synced).error().within("the upload was lost, send it again from offset 0");
  }
  ::fchmod(file.fd.get(), 0400);
  FAILPOINT("artifact.after_fsync");
  ASSIGN_OR_RETURN(const Fd folder, folders_.open(place.folder));
  const std::uint64_t begun = staging_sync_.begin();
  const Fd uploads(::openat(uploads_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!uploads.open()) return file_error("opening", "uploads", errno);

  const std::string staged = artifact_id.text();
  struct stat hashed {
  }, named{};
  if (::fstat(file.fd.get(), &hashed) != 0 ||
      ::fstatat(uploads.get(), upload_id.text().c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0 ||
      hashed.st_dev != named.st_dev || hashed.st_ino != named.st_ino) {
    return unknown_upload();
  }
  if (::renameat2(uploads.get(), upload_id.text().c_str(), staging_.get(), staged.c_str(), RENAME_NOREPLACE) != 0) {
    return file_error("staging", upload_path, errno);
  }
  FAILPOINT("artifact.after_stage");
  if (::linkat(staging_.get(), staged.c_str(), folder.get(), place.name.c_str(), 0) != 0) {
    const int failed = errno;
    ::unlinkat(staging_.get(), staged.c_str(), 0);
    return file_error("naming", place.path(), failed);
  }
  FAILPOINT("artifact.after_link");
  Status synced = put_pieces(folder, place, pieces);
  if (synced) synced = sync_names(folder, place, begun);
  if (synced) synced = sync_folder(uploads, "uploads");
  if (!synced) {
    remove_names(place, artifact_id);
    return std::move(synced).error();
  }
  FAILPOINT("artifact.after_folder_fsync");
  return stored;
}

std::size_t LocalArtifactFiles::expire_uploads(std::int64_t older_than_seconds) {
  const int copy = ::openat(uploads_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* listing = copy < 0 ? nullptr : ::fdopendir(copy);
  if (listing == nullptr) {
    if (copy >= 0) ::close(copy);
    return 0;
  }
  const std::time_t before = ::time(nullptr) - older_than_seconds;
  std::size_t expired = 0;
  while (const dirent* entry = ::readdir(listing)) {
    const auto id = parse_uuid(entry->d_name);
    if (!id) continue;
    const auto lease = UploadLease::take(*this, *id);
    struct stat about {};
    if (!lease || ::fstatat(uploads_.get(), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (about.st_mtime <= before && ::unlinkat(uploads_.get(), entry->d_name, 0) == 0) ++expired;
  }
  ::closedir(listing);
  return expired;
}

}  // namespace muniment::store
