// Stores raw bytes on disk (docs/format.md, Files). A put writes an unnamed file, hashes the stream, syncs once, links
// the file under staging/ and in its place, and syncs both folders; only then is the event sent to the log, and its
// commit removes the staging name. A file without a staging name and without an event is reported by the verifier,
// never removed.
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
  std::int64_t bytes_max = 0;      // limit for one artifact
  std::int64_t reserve_bytes = 0;  // space on the disk to keep free
  int reserve_percent = 0;         // share of the disk to keep free
};

// A file, as its event records it.
struct StoredFile {
  Uuid artifact_id;
  std::string path;  // relative to the root
  Hash hash{};
  std::int64_t size_bytes = 0;
  std::optional<Hash> pieces_root{};  // for a large file (pieces.hpp); nullopt: unknown
};

// Difference between a file and its record: two hashes or two sizes. Empty if the path is not a regular file.
struct Difference {
  std::string expected;
  std::string actual;
};

// An artifact that is being written. Destroying it before `publish` removes its bytes.
class ArtifactWrite {
 public:
  virtual ~ArtifactWrite() = default;
  virtual Status append(std::string_view bytes) = 0;  // too_large past the limit; over_budget on a full disk
  virtual std::int64_t size() const = 0;
  // Makes the file durable in its place and under its staging name before it returns. After a failed fsync it writes
  // one new file if the bytes are still in memory, otherwise returns system_error.
  virtual Result<StoredFile> publish(std::string_view run_id, std::string_view step_id, const Uuid& artifact_id,
                                     std::string_view mime_type) = 0;
};

struct DiskSpace {
  std::int64_t free_bytes = 0;
  std::int64_t total_bytes = 0;
  std::int64_t reserve_bytes = 0;  // space that must stay free
};

class ArtifactFiles {
 public:
  static Result<std::unique_ptr<ArtifactFiles>> open(ArtifactFilesOptions options);
  virtual ~ArtifactFiles() = default;

  // Errors: too_large if the size exceeds the limit of an artifact. Does not block.
  virtual Status check_size(std::int64_t bytes) const = 0;
  // Errors: over_budget, with the numbers, if `expected_bytes` would reduce the free space below the reserve.
  virtual Result<std::unique_ptr<ArtifactWrite>> begin(std::int64_t expected_bytes) = 0;
  // Stores all bytes at once from memory. Small puts use it: it needs fewer system calls and retries a failed fsync
  // once.
  virtual Result<StoredFile> store(std::string_view bytes, std::string_view run_id, std::string_view step_id,
                                   const Uuid& artifact_id, std::string_view mime_type) = 0;

  // Call after the commit of its event: removes the staging name. The removal need not be durable.
  virtual void committed(const Uuid& artifact_id) = 0;
  // Call after the event was refused: removes both names.
  virtual void abandon(const StoredFile& file) = 0;

  // Removes both names durably; missing names are ignored. The bytes are unlinked and not overwritten, because current
  // file systems do not guarantee that overwriting destroys them.
  virtual Status erase(const Uuid& artifact_id, std::string_view path) = 0;

  // The next three functions are the only ways to read a file's bytes. They return only bytes whose hash was verified
  // in memory. Size and links are checked before the read. Errors: not_found; corrupt if the file does not match its
  // record, with the details in `difference`, which may be nullptr; invalid_argument if the span is outside the file.
  virtual Result<std::string> read(const StoredFile& file, std::int64_t offset, std::int64_t length,
                                   Difference* difference = nullptr) = 0;
  // Verifies the whole file without returning it.
  virtual Status check(const StoredFile& file, Difference* difference = nullptr) = 0;
  // Reads a span that has its own hash, such as a passage. `hash_of` replaces SHA-256.
  using HashOf = std::function<Hash(std::string_view)>;
  virtual Result<std::string> read_hashed(std::string_view path, std::int64_t offset, std::int64_t length,
                                          const Hash& hash, Difference* difference = nullptr,
                                          const HashOf& hash_of = {}) = 0;
  // Replaces a missing or damaged file if the source has the recorded hash. Returns false if the file matches its
  // record; it is then left unchanged.
  virtual Result<bool> repair(const StoredFile& file, std::string_view source_file) = 0;

  // Call at start: removes both names of every staged id without a row, and the staging name of the others. `has_row`
  // queries the artifact table.
  virtual Status sweep_staging(const std::function<Result<bool>(const Uuid&)>& has_row) = 0;

  // Resumable uploads: an upload is a file under uploads/<upload_id>, kept for a limited time.
  virtual Result<std::int64_t> upload_size(const Uuid& upload_id) = 0;  // errors: not_found
  virtual Status upload_append(const Uuid& upload_id, std::int64_t offset,
                               std::string_view bytes) = 0;  // errors: conflict for a wrong offset
  virtual Result<StoredFile> upload_publish(const Uuid& upload_id, std::string_view run_id, std::string_view step_id,
                                            const Uuid& artifact_id, std::string_view mime_type) = 0;
  virtual std::size_t expire_uploads(std::int64_t older_than_seconds) = 0;

  virtual DiskSpace disk() const = 0;
  virtual bool below_reserve() const = 0;
};

}  // namespace muniment::store
