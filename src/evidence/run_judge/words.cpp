// Compiles and matches patterns with RE2.
#include "evidence/run_judge/words.hpp"

#include <re2/re2.h>

#include <utility>

namespace muniment::evidence::run_judge {
namespace {

constexpr std::int64_t words_memory_bytes_max = 32 << 20;  // memory of a compiled pattern and its automaton

re2::RE2::Options options_of(bool ignore_case) {
  re2::RE2::Options options;
  options.set_case_sensitive(!ignore_case);
  options.set_max_mem(words_memory_bytes_max);
  options.set_encoding(
      re2::RE2::Options::EncodingLatin1);  // matches bytes, because a text may be cut within a character
  return options;
}

}  // namespace

Pattern::Pattern(const std::string& text, bool ignore_case) : pattern_(new re2::RE2(text, options_of(ignore_case))) {}
Pattern::~Pattern() { delete pattern_; }
Pattern::Pattern(Pattern&& other) noexcept : pattern_(std::exchange(other.pattern_, nullptr)) {}

std::optional<Match> Pattern::find(std::string_view text, std::size_t from) const {
  if (from > text.size()) return std::nullopt;
  re2::StringPiece found[2];
  const int groups = pattern_->NumberOfCapturingGroups() > 0 ? 2 : 1;
  const re2::StringPiece piece(text.data(), text.size());
  if (!pattern_->Match(piece, from, text.size(), re2::RE2::UNANCHORED, found, groups)) return std::nullopt;
  Match match;
  match.begin = static_cast<std::size_t>(found[0].data() - text.data());
  match.end = match.begin + found[0].size();
  if (groups == 2 && found[1].data() != nullptr) match.group = std::string_view(found[1].data(), found[1].size());
  return match;
}

std::optional<Match> Pattern::find_last(std::string_view text) const {
  std::optional<Match> last;
  for (std::size_t from = 0;;) {
    const std::optional<Match> next = find(text, from);
    if (!next) return last;
    last = next;
    from = next->end > from ? next->end : from + 1;
  }
}

std::string lowered(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

}  // namespace muniment::evidence::run_judge
