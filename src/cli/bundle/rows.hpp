// Parts of a run bundle that export and import share: member names, the checkpoint and lines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/files/tar_archive.hpp"
#include "base/result.hpp"

namespace muniment::cli {

inline constexpr std::string_view bundle_format = "muniment-bundle";

// Fields of a checkpoint note, without its signatures.
struct BundleCheckpoint {
  std::string origin;
  std::int64_t size = 0;
  bool is_signed = false;
};

// Errors: invalid_argument.
Result<BundleCheckpoint> read_bundle_checkpoint(std::string_view note);

// Reads the lines of one member in constant memory.
class MemberLines {
 public:
  // Errors: not_found if the bundle has no such member.
  static Result<MemberLines> open(const std::string& bundle, std::string_view member);
  // Returns the next line without its line feed; nullopt at the end. Errors: too_large for a line longer than any row.
  Result<std::optional<std::string>> next();

 private:
  explicit MemberLines(TarReader reader) : reader_(std::move(reader)) {}
  TarReader reader_;
  std::string buffer_;
  bool ended_ = false;
};

// Calls `take` with every complete line without its line feed; returns the first error of `take`.
template <typename Take>
Status for_each_line(std::string_view lines, Take take) {
  for (std::size_t end = lines.find('\n'); end != std::string_view::npos; end = lines.find('\n')) {
    RETURN_IF_ERROR(take(lines.substr(0, end)));
    lines.remove_prefix(end + 1);
  }
  return success();
}

}  // namespace muniment::cli
