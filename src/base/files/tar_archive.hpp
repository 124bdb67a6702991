// Tar archives, compressed with zstd or not: the only files that know libarchive. What is read may be
// hostile: only regular files are given out, nothing is ever unpacked onto a disk, and no more of an entry is
// decompressed than its reader asks for.
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
};

class TarReader {
 public:
  // Errors: not_found, denied, corrupt (not such an archive).
  static Result<TarReader> open(const std::string& path);
  TarReader(TarReader&&) noexcept;
  TarReader& operator=(TarReader&&) noexcept;
  ~TarReader();

  // The next entry, whatever of the one before was left unread; nullopt: there is none. Errors: corrupt, also
  // for an entry that is not a regular file with a name and a size.
  Result<std::optional<TarEntry>> next();

  // After the last entry: nothing follows it but the zeros that end an archive, at least two blocks of them and no more
  // than fill its last record. Reads the file once more. Errors: corrupt.
  Status check_end();

  // The next bytes of the present entry, valid until the next call; empty at its end. Errors: corrupt.
  Result<std::string_view> read();

 private:
  struct Impl;
  explicit TarReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Writes a .tar.zst, an entry after the other. The bytes depend on nothing but the entries' names and contents:
// no times, no owners.
class TarWriter {
 public:
  // Onto an open file, which stays the caller's; `path` names it in errors.
  static Result<TarWriter> create(int descriptor, std::string path);
  TarWriter(TarWriter&&) noexcept;
  TarWriter& operator=(TarWriter&&) noexcept;
  ~TarWriter();  // without `finish` the file is not an archive

  // Begins the next entry; the one before must have got its `size_bytes`. Errors: over_budget (no space), unavailable,
  // system_error.
  Status begin(const TarEntry& entry);
  Status write(std::string_view bytes);
  Status finish();

 private:
  struct Impl;
  explicit TarWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muniment
