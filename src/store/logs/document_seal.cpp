#include "store/logs/document_seal.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/crypto/hmac.hpp"
#include "base/files/file.hpp"
#include "base/log.hpp"

namespace muniment::store {
namespace {

// Each of the two seals has its own sector, so that a torn write leaves the other intact.
constexpr off_t seal_bytes = 512;

}  // namespace

std::string DocumentSeal::record(std::int64_t next_seq, std::string_view digest) const {
  std::string text = std::to_string(next_seq);
  text.insert(0, 20 - text.size(), '0');
  return text + to_hex(hmac_sha256(key_, {"muniment-documents-1", log_id_.text(), text, digest}));
}

void DocumentSeal::note(std::int64_t next_seq, std::string_view digest) {
  const std::string bytes = record(next_seq, digest);
  const Fd file(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  const bool written = file.open() && ::pwrite(file.get(), bytes.data(), bytes.size(), (1 - kept_) * seal_bytes) ==
                                          static_cast<ssize_t>(bytes.size());
  if (!written && !failed_)
    log_error("the seal of the document tables cannot be stored",
              {{"error", file_error("writing", path_, errno).message}});
  failed_ = !written;
}

bool DocumentSeal::matches(std::int64_t next_seq, std::string_view digest) {
  const Fd file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.open()) return false;
  const std::string wanted = record(next_seq, digest);
  for (int place = 0; place < 2; ++place) {
    const auto bytes = read_at(file, place * std::int64_t{seal_bytes}, wanted.size());
    if (!bytes || !equal_hashes(*bytes, wanted)) continue;
    kept_ = place;
    return true;
  }
  return false;
}

}  // namespace muniment::store
