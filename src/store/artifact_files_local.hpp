// The artifact files of a local file system: what artifact_files.hpp promises, over artifact_disk.
// Under the root are runs/ (the artifacts), staging/ (one name for each that has no committed event
// yet) and uploads/ (those that are still coming in).
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "store/artifact_disk.hpp"
#include "store/artifact_files.hpp"

namespace muniment::store {

// Where an artifact goes: "runs/r1/main" and "<id>.txt".
struct Place {
  std::string folder;
  std::string name;
  std::string path() const { return folder + "/" + name; }
};
Result<Place> place_of(std::string_view run_id, std::string_view step_id, const Uuid& artifact_id,
                       std::string_view mime_type);

class LocalArtifactFiles final : public ArtifactFiles {
 public:
  static Result<std::unique_ptr<LocalArtifactFiles>> make(ArtifactFilesOptions options);
  ~LocalArtifactFiles() override;

  Result<std::unique_ptr<ArtifactWrite>> begin(std::int64_t expected_bytes) override;
  Result<StoredFile> store(std::string_view bytes, std::string_view run_id, std::string_view step_id,
                           const Uuid& artifact_id, std::string_view mime_type) override;
  void committed(const Uuid& artifact_id) override;
  void abandon(const StoredFile& file) override;
  Status erase(const Uuid& artifact_id, std::string_view path) override;

  Result<std::string> read(std::string_view path, std::int64_t offset, std::int64_t length) override;
  Result<std::int64_t> size(std::string_view path) override;
  Result<Hash> hash(std::string_view path, std::int64_t* size_out) override;
  Status repair(std::string_view path, std::string_view source_file, const Hash& expected) override;
  Status sweep_staging(const std::function<Result<bool>(const Uuid&)>& has_row) override;

  Result<std::int64_t> upload_size(const Uuid& upload_id) override;
  Status upload_append(const Uuid& upload_id, std::int64_t offset, std::string_view bytes) override;
  Result<StoredFile> upload_publish(const Uuid& upload_id, std::string_view run_id, std::string_view step_id,
                                    const Uuid& artifact_id, std::string_view mime_type) override;
  std::size_t expire_uploads(std::int64_t older_than_seconds) override;

  DiskSpace disk() const override;
  bool below_reserve() const override;

  // Of use to an ArtifactWrite.
  const ArtifactFilesOptions& options() const { return options_; }
  Status check_room(std::int64_t more_bytes) const;
  Result<UnnamedFile> new_file() const { return UnnamedFile::open(staging_.get()); }
  // Links a synced file under staging/ and its place and makes both entries durable; on an error
  // neither name stays.
  Status link_both(const UnnamedFile& file, const Place& place, const Uuid& artifact_id);

 private:
  class UploadLease;

  LocalArtifactFiles(ArtifactFilesOptions options, Fd root, Fd staging, Fd uploads);
  Status store_once(std::string_view bytes, const Place& place, const Uuid& artifact_id);
  Status sync_names(const Fd& place_folder, const Place& place, std::uint64_t begun);
  void remove_names(const Place& place, const Uuid& artifact_id) const;
  Status drop_places(const std::set<Uuid>& unknown) const;
  void tidy();

  // Names to take away once nobody waits for it: unlinking can wait for a journal commit, and the
  // callers of `committed` must not.
  struct Chore {
    Uuid artifact_id;
    std::string path;  // empty: only the staging name goes
  };
  void add_chore(Chore chore);

  const ArtifactFilesOptions options_;
  const Fd root_;
  const Fd staging_;
  const Fd uploads_;
  Folders folders_;
  GroupSync staging_sync_;

  std::mutex uploads_mutex_;
  std::set<Uuid> uploads_busy_;

  std::mutex chores_mutex_;
  std::condition_variable chores_changed_;
  std::vector<Chore> chores_;
  bool stopping_ = false;
  std::thread tidier_;
};

}  // namespace muniment::store
