#include "cli/bundle/rows.hpp"

#include <fmt/format.h>

#include "base/crypto/signed_note.hpp"

namespace muniment::cli {
namespace {

// A body of 60 KiB is up to six times as long if every byte is escaped; the rest of a row is shorter.
constexpr std::size_t row_line_bytes_max = 1 << 20;

}  // namespace

Result<BundleCheckpoint> read_bundle_checkpoint(std::string_view note) {
  // A note without signatures consists of three lines, with or without the empty line.
  const std::size_t blank = note.find("\n\n");
  const std::string_view text = blank == std::string_view::npos ? note : note.substr(0, blank + 1);
  const auto checkpoint = Checkpoint::parse(text);
  if (!checkpoint) return Error(Errc::invalid_argument, "not a checkpoint: " + checkpoint.error().message);
  return BundleCheckpoint{checkpoint->origin, checkpoint->size,
                          blank != std::string_view::npos && note.size() > blank + 2};
}

Result<MemberLines> MemberLines::open(const std::string& bundle, std::string_view member) {
  ASSIGN_OR_RETURN(TarReader reader, TarReader::open(bundle));
  for (;;) {
    ASSIGN_OR_RETURN(const auto entry, reader.next());
    if (!entry) return Error(Errc::not_found, fmt::format("the bundle has no {}", member));
    if (entry->path == member) return MemberLines(std::move(reader));
  }
}

Result<std::optional<std::string>> MemberLines::next() {
  for (std::size_t searched = 0;;) {
    const std::size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return std::optional(std::move(line));
    }
    if (ended_) return std::optional<std::string>();
    if (buffer_.size() > row_line_bytes_max)
      return Error(Errc::too_large, "the bundle contains a line longer than any row");
    searched = buffer_.size();
    ASSIGN_OR_RETURN(const std::string_view piece, reader_.read());
    ended_ = piece.empty();
    buffer_ += piece;
  }
}

}  // namespace muniment::cli
