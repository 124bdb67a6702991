#include "base/files/zstd.hpp"

#include <zstd.h>

#include <memory>
#include <stdexcept>

namespace muniment {
namespace {

constexpr int compression_level = 3;

}  // namespace

std::string compress(std::string_view bytes) {
  const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  if (!context) throw std::bad_alloc();
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, compression_level);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  std::string frame(ZSTD_compressBound(bytes.size()), '\0');
  const std::size_t size = ZSTD_compress2(context.get(), frame.data(), frame.size(), bytes.data(), bytes.size());
  // Only memory allocation can fail, because the buffer suffices
  if (ZSTD_isError(size)) throw std::runtime_error(ZSTD_getErrorName(size));
  frame.resize(size);
  return frame;
}

Result<std::string> decompress(std::string_view frame, std::size_t bytes_max) {
  const unsigned long long size = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN)
    return Error(Errc::corrupt, "not a Zstandard frame");
  if (size > bytes_max) {
    return Error(Errc::too_large,
                 "its content has " + std::to_string(size) + " bytes, limit " + std::to_string(bytes_max));
  }
  std::string bytes(static_cast<std::size_t>(size), '\0');
  const std::size_t got = ZSTD_decompress(bytes.data(), bytes.size(), frame.data(), frame.size());
  if (ZSTD_isError(got)) return Error(Errc::corrupt, std::string("damaged: ") + ZSTD_getErrorName(got));
  if (got != bytes.size()) return Error(Errc::corrupt, "damaged: it ends early");
  return bytes;
}

}  // namespace muniment
