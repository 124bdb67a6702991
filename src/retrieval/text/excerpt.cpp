// Cuts summaries and snippets from texts.
#include "retrieval/text/excerpt.hpp"

#include <unicode/uchar.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "retrieval/text/document_text.hpp"
#include "retrieval/text/unicode.hpp"

namespace muniment::retrieval {
namespace {

constexpr std::string_view ellipsis = "…";
constexpr std::size_t slack_bytes = 64;  // read beyond a cut, so that the cluster at the cut is complete
constexpr std::size_t snippet_words_max = 64;

// Directional embeddings, overrides, isolates and marks, zero-width characters, and tags. The joiners of Persian, Indic
// scripts and emoji are kept.
bool is_deceptive(char32_t c) {
  return c == 0x061C || c == 0x200B || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) ||
         (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF || (c >= 0xFFF9 && c <= 0xFFFB) ||
         (c >= 0xE0000 && c <= 0xE0FFF && !(c >= 0xE0100 && c <= 0xE01EF));
}

// Returns a readable cut in (floor, end]: after a sentence, else after a word, else 0.
std::size_t readable_end(std::string_view text, std::size_t floor, std::size_t end, bool& sentence) {
  std::size_t word = 0;
  for (std::size_t at = end; at > floor; --at) {
    if (at < text.size() && !is_ascii_blank(text[at])) continue;
    if (word == 0) word = at;
    const CodePoint last = code_point_before(text, at);
    sentence = last.value == '.' || last.value == '!' || last.value == '?' || last.value == U'؟' ||
               last.value == U'۔' || last.value == U'।';
    if (sentence) return at;
  }
  for (std::size_t at = word == 0 ? end : 0; at > floor;) {  // in a script without spaces
    const CodePoint last = code_point_before(text, at);
    sentence = last.value == U'。' || last.value == U'！' || last.value == U'？';
    if (sentence && !(at < text.size() && continues_grapheme(decode_utf8(text, at).value))) return at;
    at -= last.size == 0 ? 1 : last.size;
  }
  sentence = false;
  return word;
}

// Returns at most `bytes_max` bytes of a shown text, with "…" if it continues; keeps the first `keep` bytes if
// possible.
std::string cut_to(std::string_view text, std::size_t bytes_max, std::size_t keep = 0) {
  if (text.size() <= bytes_max) return std::string(text);
  bool sentence = false;
  const std::size_t floor = std::max(bytes_max / 3, keep == 0 ? 0 : keep - 1);
  if (const std::size_t end = readable_end(text, floor, grapheme_edge(text, bytes_max), sentence); sentence)
    return std::string(text.substr(0, end));
  const std::size_t edge = bytes_max <= ellipsis.size() ? 0 : grapheme_edge(text, bytes_max - ellipsis.size());
  if (edge == 0) return std::string(first_graphemes(text, bytes_max));
  const std::size_t word = readable_end(text, floor, edge, sentence);
  return std::string(trimmed(text.substr(0, word == 0 ? edge : word))).append(ellipsis);
}

// A shown text, folded letter by letter; `places[i]` is the place of the letter of folded byte i.
struct Folded {
  std::string text;
  std::vector<std::size_t> places;
};

Folded fold(std::string_view text) {
  Folded out;
  out.text.reserve(text.size());
  out.places.reserve(text.size() + 1);
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint here = decode_utf8(text, at);
    out.text += folded(here.value);
    out.places.resize(out.text.size(), at);
    at += here.size == 0 ? 1 : here.size;
  }
  out.places.push_back(text.size());
  return out;
}

struct Occurrence {
  std::size_t start = 0;  // in the shown text
  std::size_t end = 0;
  std::size_t word = 0;  // index of the query's word
};

// Finds the words: at the beginning of a word, or anywhere in a script without spaces. A longer word with the same
// beginning counts, since "walk" should find "walks" and "walking".
std::vector<Occurrence> occurrences(const Folded& in, const std::vector<std::string>& words) {
  std::vector<Occurrence> found;
  for (std::size_t number = 0; number < std::min(words.size(), snippet_words_max); ++number) {
    const std::string word = fold(trimmed(words[number])).text;
    if (word.empty()) continue;
    const bool anywhere = is_ideographic(decode_utf8(word, 0).value);
    for (std::size_t at = in.text.find(word); at != std::string::npos; at = in.text.find(word, at + word.size())) {
      if (!anywhere && at > 0 && is_letter_or_digit(code_point_before(in.text, at).value)) continue;
      found.push_back({in.places[at], in.places[at + word.size()], number});
    }
  }
  std::sort(found.begin(), found.end(), [](const Occurrence& a, const Occurrence& b) { return a.start < b.start; });
  return found;
}

// Returns the stretch of at most `bytes_max` bytes with the most distinct words; the first one of equals.
Span densest(const std::vector<Occurrence>& found, std::size_t bytes_max) {
  std::map<std::size_t, int> inside;
  Span best;
  std::size_t most = 0, first = 0;
  for (const Occurrence& last : found) {
    ++inside[last.word];
    while (last.end - found[first].start > bytes_max && found[first].start < last.start) {
      const auto leaving = inside.find(found[first++].word);
      if (--leaving->second == 0) inside.erase(leaving);
    }
    if (inside.size() > most) most = inside.size(), best = {found[first].start, std::max(last.end, found[first].start)};
  }
  return best;
}

// Returns a start that shows `focus` with some context before it: after a sentence if possible, else at a word.
std::size_t readable_start(std::string_view text, Span focus, std::size_t bytes_max) {
  const std::size_t spare = focus.size() < bytes_max ? (bytes_max - focus.size()) / 2 : 0;
  const std::size_t earliest = focus.start - std::min(spare, focus.start);
  if (earliest == 0) return 0;
  std::size_t word = std::string_view::npos;
  for (std::size_t at = focus.start; at > earliest; --at) {
    if (!is_ascii_blank(text[at - 1]) || at < 2) continue;
    word = at;
    if (text[at - 2] == '.' || text[at - 2] == '!' || text[at - 2] == '?') return at;
  }
  return word != std::string_view::npos ? word : grapheme_edge(text, earliest);
}

}  // namespace

std::string shown(std::string_view text, std::size_t bytes_max) {
  std::string out;
  bool blank = false;
  for (std::size_t at = 0; at < text.size() && out.size() <= bytes_max + slack_bytes;) {
    const CodePoint here = decode_utf8(text, at);
    at += here.size == 0 ? 1 : here.size;
    if (here.size == 0) continue;
    if (is_white_space(here.value)) {
      blank = !out.empty();
      continue;
    }
    if (here.value < 0x20 || (here.value >= 0x7F && here.value < 0xA0) || is_deceptive(here.value)) continue;
    if (blank) out += ' ';
    blank = false;
    append_utf8(out, here.value);
  }
  return out;
}

std::string summary_of(std::string_view text, std::size_t bytes_max) {
  return cut_to(shown(text, bytes_max), bytes_max);
}

std::string snippet_of(std::string_view text, const std::vector<std::string>& words, std::size_t bytes_max) {
  const std::string whole = shown(text, text.size());
  if (whole.size() <= bytes_max) return whole;
  // Reserves room for the marks of a cut at both ends.
  const Span focus = densest(occurrences(fold(whole), words), bytes_max - std::min(bytes_max, 2 * ellipsis.size()));
  if (focus.empty()) return cut_to(whole, bytes_max);
  const std::size_t start = readable_start(whole, focus, bytes_max);
  const std::string_view rest = std::string_view(whole).substr(start);
  if (start == 0 || bytes_max <= 2 * ellipsis.size()) return cut_to(rest, bytes_max, focus.end - start);
  std::string snippet = cut_to(rest, bytes_max - ellipsis.size(), focus.end - start);
  return snippet.insert(0, ellipsis);
}

}  // namespace muniment::retrieval
