// Recognizes questions and the passages after them.
#include "retrieval/query/next_passage.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace muniment::retrieval {
namespace {

struct NumberedName {
  std::string_view name;
  std::uint64_t number = 0;
};

std::optional<NumberedName> numbered(std::string_view name) {
  const std::size_t last = name.find_last_not_of("0123456789");
  const std::size_t digits = last == std::string_view::npos ? 0 : last + 1;
  NumberedName out{name.substr(0, digits)};
  const auto [end, error] = std::from_chars(name.data() + digits, name.data() + name.size(), out.number);
  if (error != std::errc() || out.number == std::numeric_limits<std::uint64_t>::max()) return std::nullopt;
  return out;
}

}  // namespace

bool ends_with_question(std::string_view text) {
  const std::size_t last = text.find_last_not_of(" \t\r\n\"'`)]}*_");
  if (last == std::string_view::npos) return false;
  const std::string_view end = text.substr(0, last + 1);
  return end.ends_with('?') || end.ends_with("\uff1f") || end.ends_with("\u061f");
}

bool continues(const store::ChunkInDocument& first, const store::ChunkInDocument& next) {
  if (first.document.corpus != next.document.corpus) return false;
  if (first.document.seq == next.document.seq) return next.chunk.number == first.chunk.number + 1;
  if (next.chunk.number != 0 || first.chunk.number + 1 != first.document.chunks) return false;
  const auto a = numbered(first.document.document), b = numbered(next.document.document);
  return a && b && a->name == b->name && b->number == a->number + 1;
}

bool passes(const Filter& filter, const Facts& facts) {
  const auto has = [&](const std::string& label) {
    return std::ranges::find(facts.labels, label) != facts.labels.end();
  };
  return std::ranges::all_of(filter.all_of, [&](const auto& group) { return std::ranges::any_of(group, has); }) &&
         std::ranges::none_of(filter.none_of, has) && (!filter.after_us || facts.time_us > *filter.after_us) &&
         (!filter.before_us || facts.time_us < *filter.before_us);
}

}  // namespace muniment::retrieval
