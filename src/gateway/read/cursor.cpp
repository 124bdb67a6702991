// Encodes and checks the cursor of a page.
#include "gateway/read/cursor.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "base/crypto/sha256.hpp"

namespace muniment::gateway {
namespace {

constexpr std::size_t position_bytes = 8;
constexpr std::size_t question_bytes = 8;
constexpr std::array<std::string_view, 5> page_members = {"_meta", "cursor", "fields", "limit", "max_bytes"};

std::string question_mark(std::string_view question) {
  return std::string(view(sha256(question)).substr(0, question_bytes));
}

}  // namespace

std::string question_of(std::string_view method, const json::Value& params) {
  std::vector<std::string> members;
  for (json::Value member : params) {
    const std::string name = member.key();
    if (std::find(page_members.begin(), page_members.end(), name) != page_members.end()) continue;
    members.push_back("\n" + name + "=" + json::canonical(member));
  }
  std::sort(members.begin(), members.end());  // the order of parameters is irrelevant
  std::string question(method);
  for (const std::string& member : members) question += member;
  return question;
}

std::string make_cursor(std::int64_t position, std::string_view question) {
  std::string bytes(position_bytes, '\0');
  for (std::size_t i = 0; i < position_bytes; ++i) {
    bytes[i] = static_cast<char>(position >> (56 - 8 * i));
  }
  return to_hex(bytes + question_mark(question));
}

Result<std::int64_t> read_cursor(std::string_view cursor, std::string_view question) {
  const auto bytes = from_hex(cursor);
  if (!bytes || bytes->size() != position_bytes + question_bytes ||
      bytes->substr(position_bytes) != question_mark(question)) {
    return Error(Errc::invalid_argument,
                 "cursor does not belong to this list. Send it with the unchanged parameters of the previous page, "
                 "or start again without a cursor.");
  }
  std::uint64_t position = 0;
  for (std::size_t i = 0; i < position_bytes; ++i) {
    position = position << 8 | static_cast<std::uint8_t>((*bytes)[i]);
  }
  return static_cast<std::int64_t>(position);
}

}  // namespace muniment::gateway
