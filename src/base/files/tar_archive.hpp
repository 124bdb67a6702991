// Reads and writes tar archives, compressed with zstd or not; only this unit uses libarchive. Archives may be hostile:
// only regular files are read, nothing is unpacked to disk, and an entry is decompressed only as far as its reader
// requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace muniment {

struct TarEntry {
  std::string path;
  std::int64_t size_bytes = 0;
  std::string link{};  // target of a symbolic link; empty: a regular file
};

class TarReader {
 public:
  // Errors: not_found, denied, corrupt (not such an archive).
  static Result<TarReader> open(const std::string& path);
  TarReader(TarReader&&) noexcept;
  TarReader& operator=(TarReader&&) noexcept;
  ~TarReader();

  // Returns the next entry and skips unread content of the preceding one; nullopt: no more entries. Errors: corrupt,
  // also for an entry that is not a regular file with a name and a size.
  Result<std::optional<TarEntry>> next();

  // Call after the last entry: checks that only the zeros that end an archive follow, at least two blocks and at most
  // the rest of the last record. Reads the file again. Errors: corrupt.
  Status check_end();

  // Returns the next bytes of the current entry, valid until the next call; empty at its end. Errors: corrupt.
  Result<std::string_view> read();

 private:
  struct Impl;
  explicit TarReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Writes a .tar.zst. The bytes depend only on the names and contents of the entries, in order: no times and no owners.
class TarWriter {
 public:
  // Writes to an open file, which the caller owns; `path` is its name in errors.
  static Result<TarWriter> create(int descriptor, std::string path);
  TarWriter(TarWriter&&) noexcept;
  TarWriter& operator=(TarWriter&&) noexcept;
  ~TarWriter();  // without `finish` the file is incomplete

  // Begins the next entry. The preceding one must have received its `size_bytes`. Errors: over_budget (no space),
  // unavailable, system_error.
  Status begin(const TarEntry& entry);
  Status write(std::string_view bytes);
  Status finish();

 private:
  struct Impl;
  explicit TarWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muniment
