// Reads artifact files below their root. It follows no symbolic link and never blocks on a file that is not regular.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/crypto/sha256.hpp"
#include "base/result.hpp"
#include "verify/files/pieces.hpp"

namespace muniment::verify {

struct FileFacts {
  std::int64_t size_bytes = 0;
  Hash hash{};
  bool was_read = true;             // false: the size differs from the requested one
  std::optional<PieceTree> pieces;  // pieces of a large file
};

class ArtifactRoot {
 public:
  // Errors: not_found.
  static Result<ArtifactRoot> open(const std::string& path);
  ArtifactRoot(ArtifactRoot&&) noexcept;
  ~ArtifactRoot();

  // Returns the facts of a file. Errors: not_found or corrupt if the path cannot be the artifact (missing, a link, not
  // a regular file); unavailable if it could not be read.
  Result<FileFacts> facts(const std::string& relative, std::int64_t size_wanted) const;
  Result<std::string> read(const std::string& relative, std::int64_t bytes_max) const;
  // Reads up to `size` bytes from `start`.
  Result<std::string> read_span(const std::string& relative, std::int64_t start, std::int64_t size) const;
  bool exists(const std::string& relative) const;
  bool same_file(const std::string& relative, const std::string& other) const;  // whether both names refer to one file
  // Returns whether the file has further hard links, through which it could be changed. `own`: path of its staging
  // link, which exists while the append is in flight.
  bool has_other_names(const std::string& relative, const std::string& own) const;
  const std::string& path() const { return path_; }

 private:
  ArtifactRoot(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace muniment::verify
