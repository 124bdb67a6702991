// Writes an artifact that arrives in pieces, hashed on arrival, in constant memory. An artifact below `kept_bytes_max`
// stays in memory until it is complete, so that a failed fsync can be retried with a new file. A larger one is
// written to disk as it arrives; a failed fsync is then a system_error.
#include <fcntl.h>

#include <fmt/format.h>

#include "base/process/failpoint.hpp"
#include "store/files/artifact_files_local.hpp"

namespace muniment::store {
namespace {

constexpr std::size_t kept_bytes_max = 256 * 1024;
// Interval at which dirty pages are passed to the disk while more bytes arrive, so that the final fsync is short.
constexpr std::int64_t writeback_bytes = 8 << 20;

class LocalWrite final : public ArtifactWrite {
 public:
  explicit LocalWrite(LocalArtifactFiles& files) : files_(files) {}

  Status append(std::string_view bytes) override {
    const auto more = static_cast<std::int64_t>(bytes.size());
    if (size_ + more > files_.options().bytes_max) return files_.check_size(size_ + more);
    if (!file_ && kept_.size() + bytes.size() <= kept_bytes_max) {
      kept_.append(bytes);
      size_ += more;
      return success();
    }
    if (!file_) RETURN_IF_ERROR(start_file());
    RETURN_IF_ERROR(write(bytes));
    size_ += more;
    return success();
  }

  std::int64_t size() const override { return size_; }

  Result<StoredFile> publish(std::string_view run_id, std::string_view step_id, const Uuid& artifact_id,
                             std::string_view mime_type) override {
    if (!file_) return files_.store(kept_, run_id, step_id, artifact_id, mime_type);
    ASSIGN_OR_RETURN(const Place place, place_of(run_id, step_id, artifact_id, mime_type));
    FAILPOINT("artifact.after_write");
    RETURN_IF_ERROR(sync_file(file_->fd(), place.path()));
    FAILPOINT("artifact.after_fsync");
    StoredFile stored{artifact_id, place.path(), hash_.finish(), size_};
    const Pieces pieces = hash_.pieces();
    if (has_pieces(size_)) stored.pieces_root = pieces.root;
    RETURN_IF_ERROR(files_.link_both(*file_, pieces, place, artifact_id));
    return stored;
  }

 private:
  Status start_file() {
    ASSIGN_OR_RETURN(UnnamedFile file, files_.new_file());
    file_.emplace(std::move(file));
    RETURN_IF_ERROR(write(kept_));
    kept_ = {};
    return success();
  }

  Status write(std::string_view bytes) {
    // Writes to disk first, so that the disk works while the bytes are hashed.
    RETURN_IF_ERROR(write_artifact(file_->fd(), bytes));
    written_ += static_cast<std::int64_t>(bytes.size());
    if (written_ - started_ >= writeback_bytes) {
      RETURN_IF_ERROR(files_.check_room(0, written_));
      // The call is a hint; the later fsync reports errors.
      ::sync_file_range(file_->fd(), started_, written_ - started_, SYNC_FILE_RANGE_WRITE);
      started_ = written_;
    }
    hash_.update(bytes);
    return success();
  }

  LocalArtifactFiles& files_;
  std::string kept_;
  std::optional<UnnamedFile> file_;
  PieceHasher hash_;
  std::int64_t size_ = 0;
  std::int64_t written_ = 0;
  std::int64_t started_ = 0;  // offset up to which writeback was started
};

}  // namespace

Result<std::unique_ptr<ArtifactWrite>> LocalArtifactFiles::begin(std::int64_t expected_bytes) {
  RETURN_IF_ERROR(check_room(expected_bytes, expected_bytes));
  return std::unique_ptr<ArtifactWrite>(std::make_unique<LocalWrite>(*this));
}

}  // namespace muniment::store
