// Implements artifact_files.hpp on a local file system with artifact_disk. The root holds runs/ (artifacts), staging/
// (a second name for each artifact without a committed event) and uploads/ (incomplete uploads).
#pragma once

#include <fcntl.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/process/worker_thread.hpp"
#include "store/files/artifact_disk.hpp"
#include "store/files/artifact_files.hpp"
#include "store/files/pieces.hpp"

namespace muniment::store {

// Path of an artifact: folder "runs/r1/main" and name "<id>.txt".
struct Place {
  std::string folder;
  std::string name;
  std::string path() const { return folder + "/" + name; }
  std::string pieces_name() const { return name + std::string(pieces_suffix); }
  std::string pieces_path() const { return folder + "/" + pieces_name(); }
};
Place place_at(std::string_view path);  // `path` must have a folder
Result<Place> place_of(std::string_view run_id, std::string_view step_id, const Uuid& artifact_id,
                       std::string_view mime_type);

// Reads like read_into, with an injectable failure.
Result<std::size_t> read_artifact(const Fd& file, std::int64_t offset, std::string& buffer, std::string_view path);

// Passes the whole file to `take` in parts. Returns the number of bytes.
template <typename Take>
Result<std::int64_t> stream_file(const Fd& file, std::string_view path, Take take) {
  constexpr std::size_t buffer_bytes = 256 * 1024;
  ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  std::string buffer(buffer_bytes, '\0');
  std::int64_t offset = 0;
  while (true) {
    ASSIGN_OR_RETURN(const std::size_t count, read_artifact(file, offset, buffer, path));
    if (count == 0) return offset;
    RETURN_IF_ERROR(take(std::string_view(buffer).substr(0, count)));
    offset += static_cast<std::int64_t>(count);
  }
}

class LocalArtifactFiles final : public ArtifactFiles {
 public:
  static Result<std::unique_ptr<LocalArtifactFiles>> make(ArtifactFilesOptions options);

  Result<std::unique_ptr<ArtifactWrite>> begin(std::int64_t expected_bytes) override;
  Result<StoredFile> store(std::string_view bytes, std::string_view run_id, std::string_view step_id,
                           const Uuid& artifact_id, std::string_view mime_type) override;
  void committed(const Uuid& artifact_id) override;
  void abandon(const StoredFile& file) override;
  Status erase(const Uuid& artifact_id, std::string_view path) override;

  Result<std::string> read(const StoredFile& file, std::int64_t offset, std::int64_t length,
                           Difference* difference) override;
  Status check(const StoredFile& file, Difference* difference) override;
  Result<std::string> read_hashed(std::string_view path, std::int64_t offset, std::int64_t length, const Hash& hash,
                                  Difference* difference, const HashOf& hash_of) override;
  Result<bool> repair(const StoredFile& file, std::string_view source_file) override;
  Status sweep_staging(const std::function<Result<bool>(const Uuid&)>& has_row) override;

  Result<std::int64_t> upload_size(const Uuid& upload_id) override;
  Status upload_append(const Uuid& upload_id, std::int64_t offset, std::string_view bytes) override;
  Result<StoredFile> upload_publish(const Uuid& upload_id, std::string_view run_id, std::string_view step_id,
                                    const Uuid& artifact_id, std::string_view mime_type) override;
  std::size_t expire_uploads(std::int64_t older_than_seconds) override;

  DiskSpace disk() const override;
  bool below_reserve() const override;

  // Used by ArtifactWrite implementations.
  const ArtifactFilesOptions& options() const { return options_; }
  Status check_size(std::int64_t bytes) const override;
  // Checks whether `more_bytes` of an artifact of `size` bytes may be written. A small artifact may use the reserve.
  Status check_room(std::int64_t more_bytes, std::int64_t size) const;
  Result<UnnamedFile> new_file() const { return UnnamedFile::open(staging_.get()); }
  // Links a synced file under staging/ and in its place, with its pieces beside it, and makes the entries durable. On
  // an error no name remains.
  Status link_both(const UnnamedFile& file, const Pieces& pieces, const Place& place, const Uuid& artifact_id);

 private:
  class UploadLease;

  LocalArtifactFiles(ArtifactFilesOptions options, Fd root, Fd staging, Fd uploads);
  Status store_once(std::string_view bytes, const Pieces& pieces, const Place& place, const Uuid& artifact_id);
  Status put_pieces(const Fd& place_folder, const Place& place, const Pieces& pieces) const;
  Status sync_names(const Fd& place_folder, const Place& place, std::uint64_t begun);
  void remove_names(const Place& place, const Uuid& artifact_id) const;

  // A span to read: whole pieces, or the whole file.
  struct Span {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  Result<RegularFile> open_recorded(const StoredFile& file, Difference* difference) const;
  bool has_own_names(const RegularFile& opened, const StoredFile& file) const;
  std::optional<Hash> root_of(const StoredFile& file);
  // Returns nullopt if the pieces do not decide.
  Result<std::optional<bool>> fits_pieces(const StoredFile& file, std::int64_t first, std::string_view bytes);
  Result<std::string> read_through(const RegularFile& opened, const StoredFile& file, Span wanted,
                                   Difference* difference);
  void keep_pieces(const RegularFile& opened, const StoredFile& file, const Pieces& pieces);
  Status put_in_place(const UnnamedFile& file, std::string_view path);
  Status drop_places(const std::set<Uuid>& unknown) const;
  void tidy();

  // Names to remove in the background: unlinking can wait for a journal commit, and the callers of `committed` must not
  // block.
  struct Chore {
    Uuid artifact_id;
    std::string path;  // empty: only the staging name is removed
  };
  void add_chore(Chore chore);

  const ArtifactFilesOptions options_;
  const Fd root_;
  const Fd staging_;
  const Fd uploads_;
  Folders folders_;
  GroupSync staging_sync_;

  std::mutex roots_mutex_;
  std::map<Uuid, Hash> roots_;  // roots of files whose events name none, computed when the whole file was verified

  std::mutex uploads_mutex_;
  std::set<Uuid> uploads_busy_;

  std::vector<Chore> chores_;  // guarded by the lock of the background thread
  WorkerThread tidier_;
};

}  // namespace muniment::store
