// Splits texts into folded words, identifiers and character pairs.
#include "retrieval/embed/words.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "base/utf8.hpp"

namespace muniment::retrieval {
namespace {

// Letters and digits of ASCII, and the characters that join identifiers and paths.
bool is_ascii_lower(char32_t c) { return c >= 'a' && c <= 'z'; }
bool is_ascii_upper(char32_t c) { return c >= 'A' && c <= 'Z'; }
bool is_ascii_digit(char32_t c) { return c >= '0' && c <= '9'; }
bool is_joiner(char32_t c) { return c == '_' || c == '.' || c == '/' || c == ':' || c == '-'; }

// Scripts without spaces, or with long words because of their endings: Thai to Khmer, Hangul, kana, Han.
bool is_dense(char32_t c) {
  return (c >= 0x0E00 && c <= 0x0EFF) || (c >= 0x1000 && c <= 0x109F) || (c >= 0x1780 && c <= 0x17FF) ||
         (c >= 0x3041 && c <= 0x30FF && c != 0x30FB) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x4E00 && c <= 0x9FFF) ||
         (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x20000 && c <= 0x3FFFF);
}

// Appends the whole character or nothing.
void append_within(std::string& word, char32_t c) {
  const std::size_t size = word.size();
  append_utf8(word, c);
  if (word.size() > word_bytes_max) word.resize(size);
}

enum class Class : std::uint8_t { word, mark, other };

Class class_of(char32_t c) {
  if (c < 0x80) return is_ascii_lower(c) || is_ascii_upper(c) || is_ascii_digit(c) ? Class::word : Class::other;
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  if (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) return Class::word;
  if (category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME) return Class::mark;
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO ? Class::word : Class::other;
}

// Sorted for binary search.
constexpr auto stop_words = std::to_array<std::string_view>({
    "a",     "about",   "after",   "again", "all",    "also",   "am",   "an",     "and",   "any",     "are",   "as",
    "at",    "be",      "because", "been",  "before", "being",  "both", "but",    "by",    "can",     "could", "did",
    "didn",  "do",      "does",    "doesn", "doing",  "don",    "down", "during", "each",  "either",  "few",   "for",
    "from",  "further", "had",     "has",   "have",   "having", "he",   "her",    "here",  "hers",    "him",   "his",
    "how",   "i",       "if",      "in",    "into",   "is",     "isn",  "it",     "its",   "just",    "ll",    "m",
    "may",   "me",      "might",   "more",  "most",   "must",   "my",   "no",     "nor",   "not",     "now",   "of",
    "off",   "on",      "once",    "only",  "or",     "other",  "our",  "ours",   "out",   "over",    "own",   "re",
    "s",     "same",    "shall",   "she",   "should", "so",     "some", "such",   "t",     "than",    "that",  "the",
    "their", "theirs",  "them",    "then",  "there",  "these",  "they", "this",   "those", "through", "to",    "too",
    "under", "until",   "up",      "us",    "ve",     "very",   "was",  "we",     "were",  "what",    "when",  "where",
    "which", "while",   "who",     "whom",  "whose",  "why",    "will", "with",   "would", "you",     "your",  "yours",
});
static_assert(std::is_sorted(stop_words.begin(), stop_words.end()));

}  // namespace

bool is_stop_word(std::string_view folded) { return std::binary_search(stop_words.begin(), stop_words.end(), folded); }

const std::vector<WordReader::Word>& WordReader::read(std::string_view text) {
  bytes_.clear();
  spans_.clear();
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const CodePoint decoded = byte < 0x80 ? CodePoint{byte, 1} : decode_utf8(text, at);
    const char32_t c = decoded.size == 0 ? U' ' : decoded.value;
    at += std::max<std::size_t>(decoded.size, 1);
    if (is_dense(c)) {
      end_whole();
      put_dense(c);
      continue;
    }
    end_dense();
    if (c >= 0x80) {
      put_folded(c);
    } else if (class_of(c) == Class::word) {
      put(is_ascii_upper(c) ? c + 32 : c, is_ascii_upper(c));
    } else {
      is_joiner(c) ? join(c) : end_whole();
    }
  }
  end_dense();
  end_whole();
  words_.clear();
  for (const Span& span : spans_) words_.push_back({std::string_view(bytes_).substr(span.begin, span.size), span.kind});
  return words_;
}

// Decomposes compatibility forms, folds case and drops marks.
void WordReader::put_folded(char32_t c) {
  std::array<utf8proc_int32_t, 32> parts{};
  int boundary = 0;
  const auto count = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(c), parts.data(), static_cast<utf8proc_ssize_t>(parts.size()),
      static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD | UTF8PROC_STRIPMARK),
      &boundary);
  if (count < 0 || static_cast<std::size_t>(count) > parts.size()) return end_whole();
  const bool upper = utf8proc_category(static_cast<utf8proc_int32_t>(c)) == UTF8PROC_CATEGORY_LU;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const auto part = static_cast<char32_t>(parts[i]);
    switch (class_of(part)) {
      case Class::word: put(part, upper && i == 0); break;
      case Class::mark: break;
      case Class::other: end_whole(); break;
    }
  }
}

// A new part begins at the first capital after any other character (camel|Case, sha256|Sum), and at the last capital
// before a small letter (HTTP|Server).
void WordReader::put(char32_t folded, bool upper) {
  const char32_t kind = upper ? U'U' : is_ascii_digit(folded) ? U'd' : U'l';
  if (kind == U'U' && last_ != U'U' && last_ != 0) end_part();
  if (kind == U'l' && last_ == U'U' && before_last_ == U'U' && !part_.empty()) {
    std::size_t begin = part_.size() - 1;
    while (begin > 0 && (static_cast<unsigned char>(part_[begin]) & 0xC0) == 0x80) --begin;
    const std::string last_capital = part_.substr(begin);
    part_.resize(begin);
    end_part();
    part_ = last_capital;
  }
  append_within(part_, folded);
  append_within(whole_, folded);
  before_last_ = last_;
  last_ = kind;
  joined_ = false;
}

// "src/base", "std::string" and "v1.2" continue; two joiners in a row, except ::, end the identifier.
void WordReader::join(char32_t joiner) {
  const bool second_colon =
      joined_ && joiner == ':' && !whole_.empty() && whole_.back() == ':' && !whole_.ends_with("::");
  if (whole_.empty() || (joined_ && !second_colon)) return end_whole();
  end_part();
  append_within(whole_, joiner);
  joined_ = true;
}

void WordReader::end_part() {
  last_ = before_last_ = 0;
  if (part_.empty()) return;
  ++parts_;
  spans_.push_back({bytes_.size(), part_.size(), Word::Kind::plain});
  bytes_ += part_;
  part_.clear();
}

void WordReader::end_whole() {
  end_part();
  while (!whole_.empty() && is_joiner(static_cast<unsigned char>(whole_.back()))) whole_.pop_back();
  if (parts_ > 1) {
    spans_.push_back({bytes_.size(), whole_.size(), Word::Kind::whole});
    bytes_ += whole_;
  }
  whole_.clear();
  parts_ = 0;
  joined_ = false;
}

void WordReader::put_dense(char32_t c) {
  if (dense_ != 0) {
    const std::size_t begin = bytes_.size();
    append_utf8(bytes_, dense_);
    append_utf8(bytes_, c);
    spans_.push_back({begin, bytes_.size() - begin, Word::Kind::pair});
  }
  dense_alone_ = dense_ == 0;
  dense_ = c;
}

void WordReader::end_dense() {
  if (dense_ != 0 && dense_alone_) {
    const std::size_t begin = bytes_.size();
    append_utf8(bytes_, dense_);
    spans_.push_back({begin, bytes_.size() - begin, Word::Kind::pair});
  }
  dense_ = 0;
}

}  // namespace muniment::retrieval
