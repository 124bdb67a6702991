// Recognizes binary files by their first bytes.
#include <algorithm>

#include "retrieval/text/encoding.hpp"

namespace muniment::retrieval {
namespace {

struct Magic {
  std::size_t at;
  std::string_view bytes;
  std::string_view kind;
};

constexpr std::string_view of(const char* bytes, std::size_t size) { return {bytes, size}; }

constexpr Magic magics[] = {
    {0,
     "\x7f"
     "ELF",
     "an ELF executable or library"},
    {0, "\x89PNG\r\n", "a PNG image"},
    {0, "\xff\xd8\xff", "a JPEG image"},
    {0, "GIF8", "a GIF image"},
    {8, "WEBP", "a WebP image"},
    {8, "WAVE", "WAVE audio"},
    {4, "ftyp", "an MP4 video or HEIF image"},
    {0, "OggS", "Ogg audio or video"},
    {0, "ID3", "MP3 audio"},
    {0, "fLaC", "FLAC audio"},
    {0, "PK\x03\x04", "a ZIP archive (or an Office document, which is one)"},
    {0, "\x1f\x8b", "gzip data"},
    {0, "\x28\xb5\x2f\xfd", "zstd data"},
    {0,
     "\xfd"
     "7zXZ",
     "xz data"},
    {0, "BZh", "bzip2 data"},
    {0, "7z\xbc\xaf", "a 7z archive"},
    {0, "Rar!", "a RAR archive"},
    {257, "ustar", "a tar archive"},
    {0, "SQLite format 3", "an SQLite database"},
    {0, "\xd0\xcf\x11\xe0", "an old Office document"},
    {0, "\xca\xfe\xba\xbe", "a Java class or Mach-O binary"},
    {0, "\xcf\xfa\xed\xfe", "a Mach-O binary"},
    {0, of("\0asm", 4), "a WebAssembly module"},
    {0, of("\0\1\0\0", 4), "a TrueType font"},
    {0, "wOF2", "a web font"},
    {0, "!<arch>\n", "a static library"},
    {0, "PAR1", "a Parquet file"},
    {0, "\x93NUMPY", "a NumPy array"},
    {0, "MZ", "a Windows executable"},
};

}  // namespace

std::string_view binary_kind(std::string_view bytes) {
  const auto* found = std::find_if(std::begin(magics), std::end(magics), [&](const Magic& magic) {
    return bytes.size() >= magic.at && bytes.substr(magic.at).starts_with(magic.bytes);
  });
  return found == std::end(magics) ? std::string_view() : found->kind;
}

}  // namespace muniment::retrieval
