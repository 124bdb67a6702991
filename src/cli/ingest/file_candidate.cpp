#include "cli/ingest/file_candidate.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/limits.hpp"
#include "base/process/failpoint.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "retrieval/text/encoding.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t piece_bytes = 256 * 1024;
// A text of this size fits in a request line even if JSON escapes double its length.
constexpr std::int64_t document_line_bytes_max = 480 * 1024;
constexpr std::size_t sample_bytes = 8 * 1024;

FileCandidate without(Fate fate, std::string why) {
  FileCandidate candidate;
  candidate.fate = fate;
  candidate.why = std::move(why);
  return candidate;
}

bool is_same(const timespec& a, const timespec& b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

// Returns why the bytes are not text; empty if they may be text.
std::string why_binary(std::string_view bytes) {
  const std::string_view sample = bytes.substr(0, sample_bytes);
  if (sample.starts_with("%PDF-")) return {};
  const bool nul = sample.find('\0') != std::string_view::npos;
  const std::string_view kind = retrieval::binary_kind(sample);
  if (!kind.empty() && (nul || first_invalid_utf8(sample) != std::string_view::npos))
    return "binary: " + std::string(kind);
  return nul && retrieval::marked_encoding(bytes).empty() && retrieval::wide_encoding(bytes).empty() ? "binary" : "";
}

// Reads the whole file; returns whether it was unchanged during the read.
Result<bool> read_once(FileCandidate& candidate, const std::string& name) {
  if (::fstat(candidate.fd.get(), &candidate.status) != 0) return file_error("reading", name, errno);
  const bool small = candidate.size() <= document_line_bytes_max;
  Sha256 hash;
  std::string piece;
  candidate.text.clear();
  candidate.why.clear();
  std::int64_t offset = 0;
  do {
    piece.resize(static_cast<std::size_t>(std::min<std::int64_t>(candidate.size() - offset, piece_bytes)));
    ASSIGN_OR_RETURN(const std::size_t have, read_into(candidate.fd, offset, piece, name));
    if (have < piece.size()) return false;
    if (offset == 0) candidate.why = why_binary(piece);
    if (!candidate.why.empty()) return true;
    hash.update(piece);
    if (small) candidate.text += piece;
    offset += static_cast<std::int64_t>(have);
  } while (offset < candidate.size());
  candidate.hash = hash.finish();
  FAILPOINT("ingest.read");
  return held_still(candidate);
}

}  // namespace

Time FileCandidate::modified() const {
  return Time{std::int64_t{status.st_mtim.tv_sec} * 1'000'000 + status.st_mtim.tv_nsec / 1'000};
}

bool held_still(const FileCandidate& candidate) {
  struct stat now {};
  return ::fstat(candidate.fd.get(), &now) == 0 && now.st_size == candidate.status.st_size &&
         is_same(now.st_mtim, candidate.status.st_mtim) && is_same(now.st_ctim, candidate.status.st_ctim);
}

FileCandidate read_candidate(int folder, const std::string& name, bool follow) {
  FileCandidate candidate;
  candidate.fd =
      Fd(::openat(folder, name.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW)));
  if (!candidate.fd.open()) {
    if (errno == ENOENT) return without(Fate::skipped, "disappeared during the walk");
    if (errno == ELOOP) return without(Fate::skipped, "a symbolic link; links are not followed");
    return without(Fate::failed, std::strerror(errno));
  }
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (::fstat(candidate.fd.get(), &candidate.status) != 0) return without(Fate::failed, std::strerror(errno));
    if (!S_ISREG(candidate.status.st_mode)) return without(Fate::skipped, "neither file nor folder");
    if (candidate.size() > limits::document_bytes_max) {
      return without(Fate::failed, fmt::format("larger than {}; ingest it in parts",
                                               human_size(static_cast<std::uint64_t>(limits::document_bytes_max))));
    }
    const auto still = read_once(candidate, name);
    if (!still) return without(Fate::failed, still.error().message);
    if (!*still) continue;
    if (!candidate.why.empty()) return without(Fate::skipped, candidate.why);
    // A request's JSON cannot contain NUL or invalid UTF-8: the client sends such a file as bytes, and the daemon
    // determines its format.
    candidate.inlined = candidate.size() <= document_line_bytes_max && !candidate.text.starts_with("%PDF-") &&
                        candidate.text.find('\0') == std::string::npos &&
                        first_invalid_utf8(candidate.text) == std::string_view::npos;
    return candidate;
  }
  return without(Fate::failed, "changed while it was read; retry when it is stable");
}

}  // namespace muniment::cli
