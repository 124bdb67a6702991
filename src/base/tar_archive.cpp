#include "base/tar_archive.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include "base/file.hpp"

namespace muniment {
namespace {

constexpr std::size_t block_bytes = 256 * 1024;

}  // namespace

struct TarReader::Impl {
  struct ReadFree {
    void operator()(archive* reader) const { archive_read_free(reader); }
  };

  Fd file;
  std::unique_ptr<archive, ReadFree> reader;
  std::string path;
  std::string block = std::string(block_bytes, '\0');

  Error failure() const {
    const char* const words = archive_error_string(reader.get());
    return {Errc::corrupt, fmt::format("reading {}: {}", path, words != nullptr ? words : "not a tar archive")};
  }
};

TarReader::TarReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TarReader::TarReader(TarReader&&) noexcept = default;
TarReader& TarReader::operator=(TarReader&&) noexcept = default;
TarReader::~TarReader() = default;

Result<TarReader> TarReader::open(const std::string& path) {
  ASSIGN_OR_RETURN(RegularFile file, open_regular(path));
  auto impl = std::make_unique<Impl>();
  impl->file = std::move(file.fd);
  impl->reader.reset(archive_read_new());
  impl->path = path;
  archive* const reader = impl->reader.get();
  // No other format and no other filter: what is not needed cannot be attacked.
  if (archive_read_support_filter_zstd(reader) != ARCHIVE_OK || archive_read_support_format_tar(reader) != ARCHIVE_OK ||
      archive_read_open_fd(reader, impl->file.get(), block_bytes) != ARCHIVE_OK) {
    return impl->failure();
  }
  return TarReader(std::move(impl));
}

Result<std::optional<TarEntry>> TarReader::next() {
  archive_entry* entry = nullptr;
  const int outcome = archive_read_next_header(impl_->reader.get(), &entry);
  if (outcome == ARCHIVE_EOF) return std::optional<TarEntry>();
  if (outcome != ARCHIVE_OK) return impl_->failure();
  const char* const name = archive_entry_pathname(entry);
  const bool plain = name != nullptr && archive_entry_filetype(entry) == AE_IFREG && archive_entry_hardlink(entry) == nullptr &&
                     archive_entry_size_is_set(entry) != 0 && archive_entry_size(entry) >= 0;
  if (!plain) return Error(Errc::corrupt, fmt::format("reading {}: it holds something that is not a regular file", impl_->path));
  return std::optional(TarEntry{name, archive_entry_size(entry)});
}

Result<std::string_view> TarReader::read() {
  const la_ssize_t got = archive_read_data(impl_->reader.get(), impl_->block.data(), impl_->block.size());
  if (got < 0) return impl_->failure();
  return std::string_view(impl_->block).substr(0, static_cast<std::size_t>(got));
}

}  // namespace muniment
