// Raw bytes on disk (event-log.md, Files): written to an unnamed file, hashed while they stream,
// synced once, linked under staging/ and under their place, both folders synced; only then does
// the event go to the log, and after its commit the staging name goes. A file without a staging
// name and without an event is a finding, never a thing to tidy away.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/crypto/sha256.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"

namespace muniment::store {

struct ArtifactFilesOptions {
  std::string root;                // <data>/artifacts
  std::int64_t bytes_max = 0;      // of one artifact
  std::int64_t reserve_bytes = 0;  // keep at least this much of the disk free, and
  int reserve_percent = 0;         // at least this share of it
};

// A file, as its event records it.
struct StoredFile {
  Uuid artifact_id;
  std::string path;  // relative to the root
  Hash hash{};
  std::int64_t size_bytes = 0;
  std::optional<Hash> pieces_root{};  // of a large one (pieces.hpp); nullopt: it is not known
};

// How a file differs from what was recorded: two hashes, or two sizes. Empty where it is no file at all.
struct Difference {
  std::string expected;
  std::string actual;
};

// One artifact being written. Dropping it before `publish` leaves nothing behind.
class ArtifactWrite {
 public:
  virtual ~ArtifactWrite() = default;
  virtual Status append(std::string_view bytes) = 0;  // too_large past the limit; over_budget on a full disk
  virtual std::int64_t size() const = 0;
  // Durable under its place and its staging name when it returns. A failed fsync is answered by
  // one new file written from memory where the bytes are still in memory, otherwise system_error.
  virtual Result<StoredFile> publish(std::string_view run_id, std::string_view step_id, const Uuid& artifact_id,
                                     std::string_view mime_type) = 0;
};

struct DiskSpace {
  std::int64_t free_bytes = 0;
  std::int64_t total_bytes = 0;
  std::int64_t reserve_bytes = 0;  // what must stay free
};

class ArtifactFiles {
 public:
  static Result<std::unique_ptr<ArtifactFiles>> open(ArtifactFilesOptions options);
  virtual ~ArtifactFiles() = default;

  // Errors: too_large for more than an artifact may have. Does not block.
  virtual Status check_size(std::int64_t bytes) const = 0;
  // Errors: over_budget, with the numbers, when `expected_bytes` more would go below the reserve.
  virtual Result<std::unique_ptr<ArtifactWrite>> begin(std::int64_t expected_bytes) = 0;
  // All at once, from memory: what small puts use (fewer system calls, one retry on a failed fsync).
  virtual Result<StoredFile> store(std::string_view bytes, std::string_view run_id, std::string_view step_id,
                                   const Uuid& artifact_id, std::string_view mime_type) = 0;

  // After the commit of its event: the staging name goes. Need not be durable.
  virtual void committed(const Uuid& artifact_id) = 0;
  // The event was refused: both names go.
  virtual void abandon(const StoredFile& file) = 0;

  // Both names go, durably; one that is gone already is as it should be. The bytes are unlinked and
  // not overwritten: no file system of today promises what that would mean.
  virtual Status erase(const Uuid& artifact_id, std::string_view path) = 0;

  // There is no other way to a file's bytes than these three, and none of them hands out a byte that was not hashed as
  // it stands in memory. Size and names are compared before anything is read. Errors: not_found; corrupt for what is
  // not the file that was recorded, and then `difference`, which may be nullptr, says how; invalid_argument for a span
  // outside.
  virtual Result<std::string> read(const StoredFile& file, std::int64_t offset, std::int64_t length,
                                   Difference* difference = nullptr) = 0;
  // The whole of it, without handing it out.
  virtual Status check(const StoredFile& file, Difference* difference = nullptr) = 0;
  // A span that has a hash of its own, such as a passage; `hash_of` where that is not just SHA-256.
  using HashOf = std::function<Hash(std::string_view)>;
  virtual Result<std::string> read_hashed(std::string_view path, std::int64_t offset, std::int64_t length,
                                          const Hash& hash, Difference* difference = nullptr,
                                          const HashOf& hash_of = {}) = 0;
  // Puts bytes back in the place of a missing or damaged file, if and only if they have its hash. False: what is there
  // is the file that was recorded, and it was left alone.
  virtual Result<bool> repair(const StoredFile& file, std::string_view source_file) = 0;

  // At start: every staged id whose row is absent loses both names, the others their staging name.
  // `has_row` asks the artifact table.
  virtual Status sweep_staging(const std::function<Result<bool>(const Uuid&)>& has_row) = 0;

  // Resumable uploads: an upload is a file under uploads/<upload_id>, kept for its time limit.
  virtual Result<std::int64_t> upload_size(const Uuid& upload_id) = 0;  // not_found
  virtual Status upload_append(const Uuid& upload_id, std::int64_t offset,
                               std::string_view bytes) = 0;  // conflict: offset
  virtual Result<StoredFile> upload_publish(const Uuid& upload_id, std::string_view run_id, std::string_view step_id,
                                            const Uuid& artifact_id, std::string_view mime_type) = 0;
  virtual std::size_t expire_uploads(std::int64_t older_than_seconds) = 0;

  virtual DiskSpace disk() const = 0;
  virtual bool below_reserve() const = 0;
};

}  // namespace muniment::store
