// Implements grapheme clusters, trimming and folding.
#include "retrieval/text/unicode.hpp"

#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/uscript.h>

#include <algorithm>

namespace muniment::retrieval {
namespace {

constexpr std::size_t cluster_bytes_max = 1024;  // searched backwards for a certain edge

int grapheme_class(char32_t c) { return u_getIntPropertyValue(static_cast<UChar32>(c), UCHAR_GRAPHEME_CLUSTER_BREAK); }

bool is_control(int kind) { return kind == U_GCB_CONTROL || kind == U_GCB_CR || kind == U_GCB_LF; }

bool is_pictograph(char32_t c) {
  return c > 0xA8 && u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_EXTENDED_PICTOGRAPHIC);
}

// The state of a cluster that the rules depend on.
struct Cluster {
  int last = U_GCB_OTHER;
  bool pictograph = false;                                  // begins with one, followed only by extenders (GB11)
  bool odd_regionals = false;                               // an odd number of regional indicators (GB12, GB13)
  enum : char { none, consonant, joiner } conjunct = none;  // an Indic consonant, and then a virama (GB9c)
};

// Hangul syllables stay together (GB6 to GB8).
bool joins_hangul(int before, int after) {
  if (before == U_GCB_L) return after == U_GCB_L || after == U_GCB_V || after == U_GCB_LV || after == U_GCB_LVT;
  if (before == U_GCB_LV || before == U_GCB_V) return after == U_GCB_V || after == U_GCB_T;
  return (before == U_GCB_LVT || before == U_GCB_T) && after == U_GCB_T;
}

// For the six scripts with conjuncts.
bool links(char32_t c, int syllabic_category) {
  const bool script =
      (c >= 0x900 && c < 0xA00) || (c >= 0xA80 && c < 0xB80) || (c >= 0xC00 && c < 0xC80) || (c >= 0xD00 && c < 0xD80);
  return script && u_getIntPropertyValue(static_cast<UChar32>(c), UCHAR_INDIC_SYLLABIC_CATEGORY) == syllabic_category;
}

bool joins(const Cluster& cluster, char32_t c, int after) {
  if (cluster.last == U_GCB_CR && after == U_GCB_LF) return true;
  if (is_control(cluster.last) || is_control(after)) return false;
  if (after == U_GCB_EXTEND || after == U_GCB_ZWJ || after == U_GCB_SPACING_MARK) return true;
  if (cluster.last == U_GCB_PREPEND || joins_hangul(cluster.last, after)) return true;
  if (cluster.last == U_GCB_ZWJ && cluster.pictograph && is_pictograph(c)) return true;
  if (cluster.conjunct == Cluster::joiner && links(c, U_INSC_CONSONANT)) return true;
  return cluster.odd_regionals && after == U_GCB_REGIONAL_INDICATOR;
}

void take(Cluster& cluster, char32_t c, int kind) {
  if (is_pictograph(c)) {
    cluster.pictograph = true;
  } else if (cluster.last == U_GCB_ZWJ || (kind != U_GCB_EXTEND && kind != U_GCB_ZWJ)) {
    cluster.pictograph = false;  // one joiner, and the character joined directly after it
  }
  cluster.odd_regionals = kind == U_GCB_REGIONAL_INDICATOR && !cluster.odd_regionals;
  if (links(c, U_INSC_CONSONANT)) {
    cluster.conjunct = Cluster::consonant;
  } else if (cluster.conjunct != Cluster::none) {
    const bool keeps = kind == U_GCB_ZWJ || (kind == U_GCB_EXTEND && u_getCombiningClass(static_cast<UChar32>(c)) != 0);
    if (links(c, U_INSC_VIRAMA))
      cluster.conjunct = Cluster::joiner;
    else if (!keeps)
      cluster.conjunct = Cluster::none;
  }
  cluster.last = kind;
}

// Returns whether two characters alone determine an edge between them.
bool always_parted(int before, char32_t c, int after) {
  if (before == U_GCB_CR && after == U_GCB_LF) return false;
  if (is_control(before) || is_control(after)) return true;
  if (before == U_GCB_PREPEND) return false;
  if (after == U_GCB_OTHER || after == U_GCB_PREPEND) return before != U_GCB_ZWJ && !links(c, U_INSC_CONSONANT);
  if (after == U_GCB_L || after == U_GCB_LV || after == U_GCB_LVT) return before != U_GCB_L;
  return after == U_GCB_REGIONAL_INDICATOR && before != U_GCB_REGIONAL_INDICATOR;
}

bool begins_code_point(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

}  // namespace

CodePoint code_point_before(std::string_view text, std::size_t at) {
  std::size_t start = at - 1;
  while (start > 0 && at - start < 4 && !begins_code_point(text[start])) --start;
  return decode_utf8(text, start);
}

bool is_ascii_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool is_white_space(char32_t c) {
  if (c < 0x80) return is_ascii_blank(static_cast<char>(c));
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000 || c == 0xFEFF;
}

bool is_letter_or_digit(char32_t c) {
  if (c < 0x80) return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
  return u_isalnum(static_cast<UChar32>(c)) != 0;
}

bool is_ideographic(char32_t c) {
  if (c < 0xE00) return false;
  UErrorCode error = U_ZERO_ERROR;
  const UScriptCode script = uscript_getScript(static_cast<UChar32>(c), &error);
  return script == USCRIPT_HAN || script == USCRIPT_HIRAGANA || script == USCRIPT_KATAKANA || script == USCRIPT_THAI ||
         script == USCRIPT_LAO || script == USCRIPT_KHMER || script == USCRIPT_MYANMAR;
}

bool continues_grapheme(char32_t c) {
  if (c < 0x300) return false;
  const int kind = grapheme_class(c);
  return kind == U_GCB_EXTEND || kind == U_GCB_ZWJ || kind == U_GCB_SPACING_MARK;
}

std::size_t next_grapheme(std::string_view text, std::size_t at) {
  Cluster cluster;
  for (bool first = true; at < text.size(); first = false) {
    const CodePoint here = decode_utf8(text, at);
    if (here.size == 0) return first ? at + 1 : at;
    const int kind = grapheme_class(here.value);
    if (!first && !joins(cluster, here.value, kind)) return at;
    take(cluster, here.value, kind);
    at += here.size;
  }
  return at;
}

std::size_t grapheme_edge(std::string_view text, std::size_t at) {
  if (at >= text.size()) return text.size();
  while (at > 0 && !begins_code_point(text[at])) --at;
  // Goes back to an edge that does not depend on earlier text.
  std::size_t sure = at;
  for (;;) {
    if (sure == 0) break;
    if (at - sure > cluster_bytes_max) return at;
    const CodePoint here = decode_utf8(text, sure), before = code_point_before(text, sure);
    const int kind = grapheme_class(here.value), kind_before = grapheme_class(before.value);
    if (always_parted(kind_before, here.value, kind)) break;
    sure -= before.size == 0 ? 1 : before.size;
  }
  while (sure < at) {
    const std::size_t next = next_grapheme(text, sure);
    if (next > at) break;
    sure = next;
  }
  return sure;
}

std::string_view first_graphemes(std::string_view text, std::size_t bytes_max) {
  return text.substr(0, bytes_max >= text.size() ? text.size() : grapheme_edge(text, bytes_max));
}

Span trimmed(std::string_view text, Span span) {
  while (span.start < span.end) {
    const CodePoint here = decode_utf8(text, span.start);
    if (here.size == 0 || !is_white_space(here.value)) break;
    span.start += here.size;
  }
  while (span.start < span.end) {
    const CodePoint last = code_point_before(text, span.end);
    if (last.size == 0 || !is_white_space(last.value)) break;
    span.end -= last.size;
  }
  if (span.empty()) return span;
  // A mark may be attached to a space, and some signs of Arabic and Indic scripts enclose one.
  if (static_cast<unsigned char>(text[span.start]) >= 0x80) span.start = grapheme_edge(text, span.start);
  if (static_cast<unsigned char>(text[span.end - 1]) >= 0x80 && span.end < text.size()) {
    const std::size_t edge = grapheme_edge(text, span.end);
    if (edge < span.end) span.end = next_grapheme(text, edge);
  }
  return span;
}

std::string_view trimmed(std::string_view text) { return piece_of(text, trimmed(text, {0, text.size()})); }

std::string folded(char32_t c) {
  if (c < 0x80) return std::string(1, static_cast<char>(c >= 'A' && c <= 'Z' ? c | 0x20 : c));
  UErrorCode error = U_ZERO_ERROR;
  static const UNormalizer2* const decomposer = unorm2_getNFKDInstance(&error);
  char32_t base = c;
  UChar parts[32];
  const std::int32_t size =
      decomposer ? unorm2_getDecomposition(decomposer, static_cast<UChar32>(c), parts, 32, &error) : -1;
  if (size > 0)
    base =
        U16_IS_LEAD(parts[0]) ? static_cast<char32_t>(U16_GET_SUPPLEMENTARY(parts[0], parts[1])) : char32_t{parts[0]};
  const std::int8_t kind = u_charType(static_cast<UChar32>(base));
  if (kind == U_NON_SPACING_MARK || kind == U_ENCLOSING_MARK) return {};
  std::string out;
  append_utf8(out, static_cast<char32_t>(u_foldCase(static_cast<UChar32>(base), U_FOLD_CASE_DEFAULT)));
  return out;
}

std::string lower_ascii(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
  return out;
}

bool is_listed(std::string_view names, std::string_view name) {
  if (name.empty()) return false;
  for (std::size_t at = names.find(name); at != std::string_view::npos; at = names.find(name, at + 1)) {
    const bool begins = at == 0 || names[at - 1] == ' ',
               ends = at + name.size() == names.size() || names[at + name.size()] == ' ';
    if (begins && ends) return true;
  }
  return false;
}

std::optional<Span> Lines::next() {
  if (at_ >= end_) return std::nullopt;
  const std::size_t line_feed = text_.find('\n', at_);
  const Span line{at_, std::min(line_feed, end_)};
  at_ = line_feed == std::string_view::npos || line_feed >= end_ ? end_ : line_feed + 1;
  return line;
}

}  // namespace muniment::retrieval
