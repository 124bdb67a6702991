#include "verify/portable/zstd_frame.hpp"

#include <fmt/format.h>

#include <array>

namespace muniment::verify {
namespace {

constexpr std::string_view magic = "\x28\xb5\x2f\xfd";
constexpr std::array<std::int64_t, 4> dictionary_bytes{0, 1, 2, 4};
constexpr std::array<std::int64_t, 4> content_size_bytes{0, 2, 4, 8};
constexpr std::size_t block_header_bytes = 3;
constexpr unsigned repeated_block = 1, reserved_block = 3;

Error not_one_frame(std::string_view why) { return {Errc::corrupt, fmt::format("not one Zstandard frame: {}", why)}; }

unsigned byte_at(std::string_view bytes, std::size_t index) { return static_cast<std::uint8_t>(bytes[index]); }

}  // namespace

Status check_one_frame(const Fd& file, std::int64_t size_bytes) {
  ASSIGN_OR_RETURN(const std::string head, read_at(file, 0, magic.size() + 1));
  if (head.size() <= magic.size() || !head.starts_with(magic)) return not_one_frame("the magic number is missing");
  const unsigned descriptor = byte_at(head, magic.size());
  const bool single_segment = (descriptor & 0x20) != 0, has_checksum = (descriptor & 0x04) != 0;
  const std::int64_t content_size =
      descriptor >> 6 == 0 ? (single_segment ? 1 : 0) : content_size_bytes[descriptor >> 6];
  std::int64_t at = static_cast<std::int64_t>(magic.size()) + 1 + (single_segment ? 0 : 1) +
                    dictionary_bytes[descriptor & 3] + content_size;
  for (bool last = false; !last;) {
    ASSIGN_OR_RETURN(const std::string header, read_at(file, at, block_header_bytes));
    if (header.size() < block_header_bytes) return not_one_frame("it ends early");
    const unsigned value = byte_at(header, 0) | byte_at(header, 1) << 8 | byte_at(header, 2) << 16;
    last = (value & 1) != 0;
    const unsigned type = value >> 1 & 3;
    if (type == reserved_block) return not_one_frame("it has a block of unknown type");
    at += static_cast<std::int64_t>(block_header_bytes) + (type == repeated_block ? 1 : value >> 3);
  }
  at += has_checksum ? 4 : 0;
  if (at > size_bytes) return not_one_frame("it ends early");
  if (at < size_bytes) return not_one_frame(fmt::format("{} bytes follow its end", size_bytes - at));
  return success();
}

}  // namespace muniment::verify
