#include "verify/postgres/copy_row.hpp"

#include <cstdint>

namespace muniment::verify {
namespace {

// Signature, flags, and the length of the header extension, which is 0.
constexpr std::string_view header{"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0", 19};
constexpr std::int64_t trailer = 0xffff;
constexpr std::int64_t null_field = 0xffff'ffff;

// Removes the next `bytes` of the message and returns them as an unsigned number; -1 if the message is shorter.
std::int64_t take_number(std::string_view& rest, std::size_t bytes) {
  if (rest.size() < bytes) return -1;
  std::int64_t value = 0;
  for (const char byte : rest.substr(0, bytes)) value = value << 8 | static_cast<std::uint8_t>(byte);
  rest.remove_prefix(bytes);
  return value;
}

}  // namespace

Result<bool> parse_copy_row(std::string_view message, bool first, CopyFields& fields) {
  fields.clear();
  if (first) {
    if (!message.starts_with(header)) return Error(Errc::unavailable, "Postgres did not send a binary COPY");
    message.remove_prefix(header.size());
  }
  const Error broken(Errc::unavailable, "Postgres sent an incomplete row");
  const std::int64_t fields_sent = take_number(message, 2);
  if (fields_sent < 0) return broken;
  if (fields_sent == trailer) return false;
  for (std::int64_t i = 0; i < fields_sent; ++i) {
    const std::int64_t length = take_number(message, 4);
    if (length == null_field) {
      fields.emplace_back();
      continue;
    }
    if (length < 0 || static_cast<std::size_t>(length) > message.size()) return broken;
    fields.emplace_back(message.substr(0, static_cast<std::size_t>(length)));
    message.remove_prefix(static_cast<std::size_t>(length));
  }
  if (!message.empty()) return broken;
  return true;
}

}  // namespace muniment::verify
