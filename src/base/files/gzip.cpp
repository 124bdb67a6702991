#include "base/files/gzip.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

namespace muniment {
namespace {

constexpr std::size_t inflated_piece_bytes = 64 * 1024;
constexpr int gzip_window_bits = 15 + 16;  // the largest window, with a gzip header

Error broken(std::string_view what) {
  return Error(Errc::invalid_argument, fmt::format("the gzip content is {}", what));
}

struct Inflater {
  Inflater() { ready = ::inflateInit2(&stream, gzip_window_bits) == Z_OK; }
  ~Inflater() { ::inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  z_stream stream{};
  bool ready = false;
};

}  // namespace

Result<std::string> gunzip(std::string_view bytes, std::size_t bytes_max) {
  Inflater inflater;
  if (!inflater.ready) return Error(Errc::unavailable, "zlib has no memory");
  z_stream& stream = inflater.stream;
  std::string out;
  int state = Z_OK;
  std::size_t given = 0;
  while (state != Z_STREAM_END || stream.avail_in > 0 || given < bytes.size()) {
    if (stream.avail_in == 0) {
      if (given == bytes.size()) return broken("truncated");
      const std::size_t piece = std::min<std::size_t>(bytes.size() - given, 1U << 30);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + given));
      stream.avail_in = static_cast<uInt>(piece);
      given += piece;
    }
    if (state == Z_STREAM_END && ::inflateReset(&stream) != Z_OK) return broken("damaged");
    const std::size_t before = out.size();
    out.resize(before + inflated_piece_bytes);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    stream.avail_out = static_cast<uInt>(inflated_piece_bytes);
    state = ::inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
    if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR) return broken("damaged");
    if (out.size() > bytes_max)
      return Error(Errc::too_large, fmt::format("the content is over {} bytes when decompressed", bytes_max));
  }
  return out;
}

}  // namespace muniment
