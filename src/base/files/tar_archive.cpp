#include "base/files/tar_archive.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/files/file.hpp"

namespace muniment {
namespace {

constexpr std::size_t block_bytes = 256 * 1024;
constexpr std::int64_t end_bytes = 2 * 512;
constexpr std::int64_t record_bytes = 20 * 512;

}  // namespace

struct TarReader::Impl {
  struct ReadFree {
    void operator()(archive* reader) const { archive_read_free(reader); }
  };
  using Reader = std::unique_ptr<archive, ReadFree>;

  Fd file;
  Reader reader;
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
  ASSIGN_OR_RETURN(RegularFile file, open_named(path));
  auto impl = std::make_unique<Impl>();
  impl->file = std::move(file.fd);
  impl->reader.reset(archive_read_new());
  impl->path = path;
  archive* const reader = impl->reader.get();
  // Only one format and one filter are enabled, to reduce the attack surface.
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
  const bool plain = name != nullptr && archive_entry_filetype(entry) == AE_IFREG &&
                     archive_entry_hardlink(entry) == nullptr && archive_entry_size_is_set(entry) != 0 &&
                     archive_entry_size(entry) >= 0;
  if (!plain)
    return Error(Errc::corrupt, fmt::format("reading {}: it holds an entry that is not a regular file", impl_->path));
  return std::optional(TarEntry{name, archive_entry_size(entry), {}});
}

Status TarReader::check_end() {
  // libarchive has consumed both blocks of zeros if they exist.
  const std::int64_t content = archive_filter_bytes(impl_->reader.get(), 0) - end_bytes;
  const Impl::Reader whole(archive_read_new());
  archive_entry* entry = nullptr;
  if (::lseek(impl_->file.get(), 0, SEEK_SET) != 0 || archive_read_support_filter_zstd(whole.get()) != ARCHIVE_OK ||
      archive_read_support_format_raw(whole.get()) != ARCHIVE_OK ||
      archive_read_open_fd(whole.get(), impl_->file.get(), block_bytes) != ARCHIVE_OK ||
      archive_read_next_header(whole.get(), &entry) != ARCHIVE_OK) {
    return Error(Errc::corrupt, fmt::format("reading {}: its end cannot be read", impl_->path));
  }
  std::int64_t at = 0;
  while (true) {
    const la_ssize_t got = archive_read_data(whole.get(), impl_->block.data(), impl_->block.size());
    if (got < 0) return Error(Errc::corrupt, fmt::format("reading {}: its end cannot be read", impl_->path));
    if (got == 0) break;
    const auto skipped = static_cast<std::size_t>(std::clamp<std::int64_t>(content - at, 0, got));
    const std::string_view rest =
        std::string_view(impl_->block).substr(skipped, static_cast<std::size_t>(got) - skipped);
    if (rest.find_first_not_of('\0') != std::string_view::npos)
      return Error(Errc::corrupt, fmt::format("reading {}: bytes follow its end", impl_->path));
    at += got;
  }
  const std::int64_t record_end = (content + end_bytes + record_bytes - 1) / record_bytes * record_bytes;
  if (at < content + end_bytes) return Error(Errc::corrupt, fmt::format("reading {}: it ends early", impl_->path));
  if (at > record_end)
    return Error(Errc::corrupt, fmt::format("reading {}: surplus zeros follow its end", impl_->path));
  return success();
}

Result<std::string_view> TarReader::read() {
  const la_ssize_t got = archive_read_data(impl_->reader.get(), impl_->block.data(), impl_->block.size());
  if (got < 0) return impl_->failure();
  return std::string_view(impl_->block).substr(0, static_cast<std::size_t>(got));
}

struct TarWriter::Impl {
  struct WriteFree {
    void operator()(archive* writer) const { archive_write_free(writer); }
  };

  std::unique_ptr<archive, WriteFree> writer;
  std::string path;
  std::string entry;
  std::int64_t missing_bytes = 0;  // remaining bytes of the current entry

  Error failure() const {
    const int number = archive_errno(writer.get());
    if (number > 0) return file_error("writing", path, number);
    const char* const words = archive_error_string(writer.get());
    return {Errc::system_error, fmt::format("writing {}: {}", path, words != nullptr ? words : "libarchive failed")};
  }

  // libarchive would pad an entry that is too short with zeros.
  Status check_complete() const {
    if (missing_bytes == 0) return success();
    return Error(Errc::system_error, fmt::format("writing {}: {} lacks {} bytes", path, entry, missing_bytes));
  }
};

TarWriter::TarWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TarWriter::TarWriter(TarWriter&&) noexcept = default;
TarWriter& TarWriter::operator=(TarWriter&&) noexcept = default;
TarWriter::~TarWriter() = default;

Result<TarWriter> TarWriter::create(int descriptor, std::string path) {
  auto impl = std::make_unique<Impl>();
  impl->writer.reset(archive_write_new());
  impl->path = std::move(path);
  archive* const writer = impl->writer.get();
  // pax headers are used only if ustar's fields are too small: from 8 GiB on.
  if (archive_write_add_filter_zstd(writer) != ARCHIVE_OK ||
      archive_write_set_format_pax_restricted(writer) != ARCHIVE_OK ||
      archive_write_set_options(writer, "hdrcharset=BINARY") != ARCHIVE_OK ||  // names are bytes, in any locale
      archive_write_set_bytes_in_last_block(writer, 1) != ARCHIVE_OK ||
      archive_write_open_fd(writer, descriptor) != ARCHIVE_OK) {
    return impl->failure();
  }
  return TarWriter(std::move(impl));
}

Status TarWriter::begin(const TarEntry& entry) {
  struct EntryFree {
    void operator()(archive_entry* header) const { archive_entry_free(header); }
  };
  RETURN_IF_ERROR(impl_->check_complete());
  const std::unique_ptr<archive_entry, EntryFree> header(archive_entry_new());
  archive_entry_set_pathname(header.get(), entry.path.c_str());
  archive_entry_set_filetype(header.get(), entry.link.empty() ? AE_IFREG : AE_IFLNK);
  archive_entry_set_perm(header.get(), entry.link.empty() ? 0644 : 0777);
  if (!entry.link.empty()) archive_entry_set_symlink(header.get(), entry.link.c_str());
  archive_entry_set_mtime(header.get(), 0, 0);
  archive_entry_set_size(header.get(), entry.size_bytes);
  if (archive_write_header(impl_->writer.get(), header.get()) != ARCHIVE_OK) return impl_->failure();
  impl_->entry = entry.path;
  impl_->missing_bytes = entry.size_bytes;
  return success();
}

Status TarWriter::write(std::string_view bytes) {
  const auto size = static_cast<std::int64_t>(bytes.size());
  if (size > impl_->missing_bytes) {
    return Error(Errc::system_error,
                 fmt::format("writing {}: {} is longer than its announced size", impl_->path, impl_->entry));
  }
  if (archive_write_data(impl_->writer.get(), bytes.data(), bytes.size()) != size) return impl_->failure();
  impl_->missing_bytes -= size;
  return success();
}

Status TarWriter::finish() {
  RETURN_IF_ERROR(impl_->check_complete());
  if (archive_write_close(impl_->writer.get()) != ARCHIVE_OK) return impl_->failure();
  return success();
}

}  // namespace muniment
