// Reads artifacts' files below their root, never through a link and never blocking on what is not
// a regular file.
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
  bool was_read = true;             // false: it is not of the size that was asked for
  std::optional<PieceTree> pieces;  // of a large file
};

class ArtifactRoot {
 public:
  // Errors: not_found.
  static Result<ArtifactRoot> open(const std::string& path);
  ArtifactRoot(ArtifactRoot&&) noexcept;
  ~ArtifactRoot();

  // Errors: not_found or corrupt when the file cannot be the artifact (missing, a link, no regular
  // file), unavailable when it could not be read.
  Result<FileFacts> facts(const std::string& relative, std::int64_t size_wanted) const;
  Result<std::string> read(const std::string& relative, std::int64_t bytes_max) const;
  // `size` bytes from `start` on, or as many as there are.
  Result<std::string> read_span(const std::string& relative, std::int64_t start, std::int64_t size) const;
  bool exists(const std::string& relative) const;
  bool same_file(const std::string& relative, const std::string& other) const;  // two names of one file
  // Under another name a file can be changed. `own`: where its own second one is, while it is in flight.
  bool has_other_names(const std::string& relative, const std::string& own) const;
  const std::string& path() const { return path_; }

 private:
  ArtifactRoot(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace muniment::verify
