// Opens the artifact root, stores artifacts from memory, and completes a put: with both names or with none.
#include "store/files/artifact_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "base/process/failpoint.hpp"
#include "store/files/artifact_files_local.hpp"

namespace muniment::store {

Result<Place> place_of(std::string_view run_id, std::string_view step_id, const Uuid& artifact_id,
                       std::string_view mime_type) {
  const std::string path = artifact_path(run_id, step_id, artifact_id, mime_type);
  RETURN_IF_ERROR(check_beneath(path));
  return place_at(path);
}

Place place_at(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return {std::string(path.substr(0, slash)), std::string(path.substr(slash + 1))};
}

Result<std::unique_ptr<ArtifactFiles>> ArtifactFiles::open(ArtifactFilesOptions options) {
  ASSIGN_OR_RETURN(auto files, LocalArtifactFiles::make(std::move(options)));
  return std::unique_ptr<ArtifactFiles>(std::move(files));
}

Result<std::unique_ptr<LocalArtifactFiles>> LocalArtifactFiles::make(ArtifactFilesOptions options) {
  if (::mkdir(options.root.c_str(), 0700) != 0 && errno != EEXIST) {
    return file_error("making the artifact root", options.root, errno);
  }
  Fd root(::open(options.root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root.open()) return file_error("opening the artifact root", options.root, errno);
  const Fd above(::openat(root.get(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!above.open()) return file_error("opening the folder of", options.root, errno);
  RETURN_IF_ERROR(sync_folder(above, "of " + options.root));

  Folders folders(root);
  ASSIGN_OR_RETURN(const Fd runs, folders.open("runs"));
  ASSIGN_OR_RETURN(Fd staging, folders.open("staging"));
  ASSIGN_OR_RETURN(Fd uploads, folders.open("uploads"));
  if (auto probe = UnnamedFile::open(staging.get()); !probe && probe.error().code == Errc::system_error) {
    return std::move(probe).error().within(
        "the artifact root must be on a file system with O_TMPFILE (ext4, xfs, btrfs, tmpfs)");
  }
  return std::unique_ptr<LocalArtifactFiles>(
      new LocalArtifactFiles(std::move(options), std::move(root), std::move(staging), std::move(uploads)));
}

LocalArtifactFiles::LocalArtifactFiles(ArtifactFilesOptions options, Fd root, Fd staging, Fd uploads)
    : options_(std::move(options)),
      root_(std::move(root)),
      staging_(std::move(staging)),
      uploads_(std::move(uploads)),
      folders_(root_) {
  tidier_.start("tidier", [this] { tidy(); });
}

DiskSpace LocalArtifactFiles::disk() const {
  struct statvfs about {};
  if (::fstatvfs(root_.get(), &about) != 0) return {};  // free space is unknown: puts are refused
  const auto unit = static_cast<std::int64_t>(about.f_frsize);
  DiskSpace space;
  space.free_bytes = static_cast<std::int64_t>(about.f_bavail) * unit;
  space.total_bytes = static_cast<std::int64_t>(about.f_blocks) * unit;
  space.reserve_bytes = std::max(options_.reserve_bytes, space.total_bytes / 100 * options_.reserve_percent);
  return space;
}

bool LocalArtifactFiles::below_reserve() const {
  const DiskSpace space = disk();
  return space.free_bytes < space.reserve_bytes;
}

Status LocalArtifactFiles::check_size(std::int64_t bytes) const {
  if (bytes <= options_.bytes_max) return success();
  Error error(Errc::too_large, fmt::format("the artifact is {} bytes, limit {}. Split it, or raise artifact_bytes_max.",
                                           bytes, options_.bytes_max));
  error.limit = options_.bytes_max;
  return error;
}

Status LocalArtifactFiles::check_room(std::int64_t more_bytes, std::int64_t size) const {
  RETURN_IF_ERROR(check_size(size));
  const DiskSpace space = disk();
  const bool small = size <= limits::artifact_in_reserve_bytes_max;
  const std::int64_t reserve = small ? space.reserve_bytes / limits::artifact_reserve_divisor : space.reserve_bytes;
  if (space.free_bytes - more_bytes < reserve) {
    Error error(Errc::over_budget,
                fmt::format("the disk of the artifacts has {} bytes free, {} more would go below the reserve of {}. "
                            "Free space, or lower disk_reserve_bytes and disk_reserve_percent.",
                            space.free_bytes, more_bytes, reserve));
    error.limit = reserve;
    return error;
  }
  return success();
}

Result<StoredFile> LocalArtifactFiles::store(std::string_view bytes, std::string_view run_id, std::string_view step_id,
                                             const Uuid& artifact_id, std::string_view mime_type) {
  RETURN_IF_ERROR(check_room(std::ssize(bytes), std::ssize(bytes)));
  ASSIGN_OR_RETURN(const Place place, place_of(run_id, step_id, artifact_id, mime_type));
  PieceHasher hasher;
  hasher.update(bytes);
  StoredFile file{artifact_id, place.path(), hasher.finish(), std::ssize(bytes)};
  const Pieces pieces = hasher.pieces();
  if (has_pieces(file.size_bytes)) file.pieces_root = pieces.root;
  Status stored = store_once(bytes, pieces, place, artifact_id);
  if (!stored && (stored.error().code == Errc::system_error || stored.error().code == Errc::unavailable)) {
    // The bytes are still in memory: retry with a new file, a new descriptor and new syncs.
    FAILPOINT("artifact.second_file");
    stored = store_once(bytes, pieces, place, artifact_id);
    if (!stored && stored.error().code == Errc::unavailable) stored.error().code = Errc::system_error;
  }
  if (!stored) return std::move(stored).error();
  return file;
}

Status LocalArtifactFiles::store_once(std::string_view bytes, const Pieces& pieces, const Place& place,
                                      const Uuid& artifact_id) {
  ASSIGN_OR_RETURN(const UnnamedFile file, new_file());
  RETURN_IF_ERROR(write_artifact(file.fd(), bytes));
  FAILPOINT("artifact.after_write");
  RETURN_IF_ERROR(sync_file(file.fd(), place.path()));
  FAILPOINT("artifact.after_fsync");
  return link_both(file, pieces, place, artifact_id);
}

Status LocalArtifactFiles::link_both(const UnnamedFile& file, const Pieces& pieces, const Place& place,
                                     const Uuid& artifact_id) {
  // Opened only for this put and before the entry is made, so that a failed sync is reported here.
  ASSIGN_OR_RETURN(const Fd folder, folders_.open(place.folder));
  const std::uint64_t begun = staging_sync_.begin();

  // The staging name is linked first. Journals keep the order, so no crash leaves a file in its place without the
  // staging name by which the next start finds it.
  RETURN_IF_ERROR(file.link(staging_.get(), artifact_id.text()));
  FAILPOINT("artifact.after_stage");
  Status linked = file.link(folder.get(), place.name);
  if (!linked) {
    ::unlinkat(staging_.get(), artifact_id.text().c_str(), 0);  // the place belongs to a different file, which stays
    return linked;
  }
  FAILPOINT("artifact.after_link");
  linked = put_pieces(folder, place, pieces);
  if (linked) linked = sync_names(folder, place, begun);
  if (!linked) remove_names(place, artifact_id);
  FAILPOINT("artifact.after_folder_fsync");
  return linked;
}

// Stores the pieces after the file is in its place, so that they share its lifetime. A leftover file of that name is
// replaced.
Status LocalArtifactFiles::put_pieces(const Fd& place_folder, const Place& place, const Pieces& pieces) const {
  if (pieces.file.empty()) return success();
  ASSIGN_OR_RETURN(const UnnamedFile file, new_file());
  RETURN_IF_ERROR(write_artifact(file.fd(), pieces.file));
  RETURN_IF_ERROR(sync_file(file.fd(), place.pieces_path()));
  ::unlinkat(place_folder.get(), place.pieces_name().c_str(), 0);
  return file.link(place_folder.get(), place.pieces_name());
}

Status LocalArtifactFiles::sync_names(const Fd& place_folder, const Place& place, std::uint64_t begun) {
  RETURN_IF_ERROR(staging_sync_.sync(staging_, "staging", begun));
  return sync_folder(place_folder, place.folder);
}

// Removes the place first. While the place exists, the staging name exists too, so a start after a crash finds both.
void LocalArtifactFiles::remove_names(const Place& place, const Uuid& artifact_id) const {
  const auto folder = open_beneath(root_, place.folder, O_RDONLY | O_DIRECTORY);
  if (!folder && folder.error().code != Errc::not_found) return;
  if (folder) {
    for (const std::string& name : {place.name, place.pieces_name()}) {
      if (::unlinkat(folder->get(), name.c_str(), 0) != 0 && errno != ENOENT) return;
    }
  }
  ::unlinkat(staging_.get(), artifact_id.text().c_str(), 0);
}

void LocalArtifactFiles::committed(const Uuid& artifact_id) { add_chore({artifact_id, {}}); }

void LocalArtifactFiles::abandon(const StoredFile& file) { add_chore({file.artifact_id, file.path}); }

Status LocalArtifactFiles::erase(const Uuid& artifact_id, std::string_view path) {
  RETURN_IF_ERROR(check_beneath(path));
  const Place place = place_at(path);
  auto folder = open_beneath(root_, place.folder, O_RDONLY | O_DIRECTORY);
  if (!folder && folder.error().code != Errc::not_found) return std::move(folder).error();
  if (folder) {
    // Removes the file first: a thread that stores its pieces checks afterwards whether the file still exists.
    for (const std::string& name : {place.name, place.pieces_name()}) {
      if (::unlinkat(folder->get(), name.c_str(), 0) != 0 && errno != ENOENT) return file_error("erasing", path, errno);
    }
    RETURN_IF_ERROR(sync_folder(*folder, place.folder));
  }
  {
    const std::lock_guard lock(roots_mutex_);
    roots_.erase(artifact_id);
  }
  if (::unlinkat(staging_.get(), artifact_id.text().c_str(), 0) == 0) return sync_folder(staging_, "staging");
  if (errno != ENOENT) return file_error("erasing", "staging/" + artifact_id.text(), errno);
  return success();
}

void LocalArtifactFiles::add_chore(Chore chore) {
  {
    const auto lock = tidier_.lock();
    chores_.push_back(std::move(chore));
  }
  tidier_.notify();
}

void LocalArtifactFiles::tidy() {
  std::vector<Chore> taken;
  while (true) {
    taken.clear();
    {
      auto lock = tidier_.lock();
      tidier_.wait(lock, [this] { return !chores_.empty(); });
      if (chores_.empty()) return;
      taken.swap(chores_);
    }
    for (const Chore& chore : taken) {
      FAILPOINT("artifact.before_unstage");
      if (chore.path.empty()) {
        ::unlinkat(staging_.get(), chore.artifact_id.text().c_str(), 0);
      } else {
        remove_names(place_at(chore.path), chore.artifact_id);
      }
    }
  }
}

}  // namespace muniment::store
