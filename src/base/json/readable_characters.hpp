// Replaces the characters of other tools' JSON that strict JSON refuses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muniment {

inline constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

struct ReadableText {
  std::string text;
  std::uint64_t replaced = 0;  // characters that became U+FFFD
  // Offsets in `text` and in the source from which both run in parallel; ascending, none for an equal length.
  std::vector<std::pair<std::size_t, std::size_t>> shifts = {};

  std::size_t source_offset(std::size_t offset) const;
};

// Replaces NUL, lone surrogates and bytes that are not UTF-8 by U+FFFD and escapes other control characters in
// strings. Leaves readable text unchanged.
ReadableText with_readable_characters(std::string_view json);

}  // namespace muniment
