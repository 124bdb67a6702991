// Chooses the cuts of a long span. From the start of each piece, the text is read once up to the last possible end of
// the piece; the best break on the way is chosen, and among equals the one nearest to the ideal length. The span is
// therefore read only a few times, whatever it contains.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/limits.hpp"
#include "retrieval/text/blocks.hpp"

namespace muniment::retrieval {
namespace {

enum Rank : int {
  no_break,
  after_comma,
  after_space,
  after_wrap,
  after_sentence,
  after_line,
  after_line_sentence,
  after_blank_line
};

// A quotation mark or bracket that belongs to the sentence before it.
bool is_closer(char32_t c) {
  switch (c) {
    case '"':
    case '\'':
    case ')':
    case ']':
    case U'”':
    case U'’':
    case U'»':
    case U'」':
    case U'』':
    case U'）': return true;
    default: return false;
  }
}

// The punctuation mark that ends a sentence directly before `at`, ignoring closing quotes and brackets.
bool ends_sentence(std::string_view text, std::size_t from, std::size_t at) {
  for (int closers = 0; at > from && closers < 4; ++closers) {
    const CodePoint c = code_point_before(text, at);
    switch (c.value) {
      case '.':
      case '!':
      case '?':
      case U'…':
      case U'。':
      case U'！':
      case U'？':
      case U'．':
      case U'؟':
      case U'۔':
      case U'।':
      case U'॥':
      case U'။':
      case U'។': return true;
      default:
        if (!is_closer(c.value)) return false;
        at -= c.size;
    }
  }
  return false;
}

// "e.g. this", "Dr. Who", "J. Doe": a full stop that does not end a sentence.
bool is_abbreviation(std::string_view text, std::size_t from, std::size_t at) {
  if (at <= from || text[at - 1] != '.') return false;
  const std::size_t stop = at - 1;
  std::size_t start = stop;
  while (start > from && stop - start < 6 && !is_ascii_blank(text[start - 1]) && text[start - 1] != '(') --start;
  const std::string_view word = text.substr(start, stop - start);
  if (word.size() == 1) return (word[0] | 0x20) >= 'a' && (word[0] | 0x20) <= 'z';
  static constexpr std::string_view known[] = {"e.g", "i.e", "Mr", "Mrs", "Ms", "Dr", "Prof", "St",  "vs",
                                               "Fig", "fig", "No", "al",  "cf", "Nr", "z.B",  "bzw", "ca"};
  return std::find(std::begin(known), std::end(known), word) != std::end(known);
}

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

// Rates a cut before `at`, at the end of white space (or anywhere, in a script without spaces).
class Ranker {
 public:
  Ranker(std::string_view text, std::size_t from, Cut cut) : text_(text), from_(from), cut_(cut) {}

  Rank at(std::size_t at) const {
    const char before = text_[at - 1];
    if (is_ascii_blank(before)) return after_white_space(at);
    if (cut_ == Cut::json && before == ',') return after_space;
    if (static_cast<unsigned char>(before) < 0x80) return no_break;
    switch (code_point_before(text_, at).value) {
      case U'。':
      case U'！':
      case U'？':
      case U'．': return after_sentence;
      case U'」':
      case U'』':
      case U'）': return ends_sentence(text_, from_, at) ? after_sentence : after_comma;
      case U'、':
      case U'，':
      case U'；':
      case U'：': return after_comma;
      case 0x3000:
      case 0x2028:
      case 0x2029: return after_space;
      default: return no_break;
    }
  }

 private:
  Rank after_white_space(std::size_t at) const {
    if (is_ascii_blank(text_[at])) return no_break;  // only at the end of the white space
    std::size_t end = at;
    int line_feeds = 0;
    while (end > from_ && is_ascii_blank(text_[end - 1])) line_feeds += text_[--end] == '\n';
    if (line_feeds > 1) return after_blank_line;
    const bool sentence = ends_sentence(text_, from_, end) && !is_abbreviation(text_, from_, end);
    if (line_feeds == 1) {
      if (cut_ != Cut::prose)
        return text_[at - 1] == '\n' ? after_line_sentence : after_line;  // an indented line continues the previous one
      if (sentence) return after_line_sentence;
      const bool wrapped = end > from_ && (is_lower(text_[end - 1]) || text_[end - 1] == ',') && is_lower(text_[at]);
      return wrapped ? after_wrap : after_line;
    }
    return sentence && !is_lower(text_[at]) ? after_sentence : after_space;
  }

  std::string_view text_;
  std::size_t from_;
  Cut cut_;
};

// The last edge if no better one was found: between clusters, and before a JSON escape that it would split.
std::size_t forced_end(std::string_view text, std::size_t from, std::size_t wanted, std::size_t last,
                       std::size_t escape) {
  std::size_t end = from;  // itself an edge, so that no search backwards is necessary
  for (std::size_t next = end; next <= wanted; next = next_grapheme(text, next)) end = next;
  if (escape > from && escape < end && end - escape < (text[escape + 1] == 'u' ? 6U : 2U)) end = escape;
  if (end <= from) end = next_grapheme(text, from);
  if (end <= last) return end;
  end = last;  // a cluster that fills a chunk: cut between code points
  while ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return end;
}

// The end of the piece that begins at `from`, no later than `last`.
std::size_t piece_end(std::string_view text, std::size_t from, std::size_t ideal, std::size_t last, Cut cut) {
  const Ranker ranker(text, from, cut);
  const std::size_t nearest = from + ideal * 6 / 10, wanted = from + ideal;
  const auto distance = [&](std::size_t place) { return place > wanted ? place - wanted : wanted - place; };
  std::size_t best = from, escape = from;  // `escape`: start of the last JSON escape before `wanted`
  Rank best_rank = no_break;
  bool escaped = false;  // the character before `at` follows a backslash
  for (std::size_t at = cut == Cut::json ? from + 1 : nearest; at <= last; ++at) {
    const bool line_feed = escaped && text[at - 1] == 'n';
    escaped = cut == Cut::json && !escaped && text[at - 1] == '\\';
    if (escaped && at <= wanted) escape = at - 1;
    if (at < nearest || escaped || (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) continue;
    const Rank rank = line_feed ? after_line : ranker.at(at);
    if (rank == no_break || rank < best_rank || (rank == best_rank && distance(at) >= distance(best))) continue;
    const bool joined = static_cast<unsigned char>(text[at]) >= 0x80 && continues_grapheme(decode_utf8(text, at).value);
    if (!joined) best = at, best_rank = rank;
  }
  return best_rank != no_break ? best : forced_end(text, from, wanted, last, escape);
}

// A line that the text continues on the next one: it is long, and the next begins with a letter.
bool is_wrapped(std::string_view text, std::size_t from, std::size_t at) {
  constexpr std::size_t wrapped_bytes_min = 50;
  const std::size_t feed = text.rfind('\n', at - 1);
  if (feed == std::string_view::npos || feed <= from) return false;
  const std::size_t before = text.rfind('\n', feed - 1);
  const std::size_t line = before == std::string_view::npos || before < from ? from : before + 1;
  return feed - line >= wrapped_bytes_min && is_letter_or_digit(decode_utf8(text, at).value) &&
         !(text[at] >= '0' && text[at] <= '9');
}

// "1. Open", "am 4. Mai": the number of an item, or an ordinal after a German article or preposition.
bool is_ordinal(std::string_view text, std::size_t from, std::size_t at) {
  std::size_t stop = at;
  while (stop > from && is_ascii_blank(text[stop - 1])) --stop;
  if (stop == from || text[stop - 1] != '.') return false;
  std::size_t digits = stop - 1;
  while (digits > from && text[digits - 1] >= '0' && text[digits - 1] <= '9') --digits;
  if (stop - 1 - digits < 1 || stop - 1 - digits > 2) return false;
  if (digits == from) return true;
  if (text[digits - 1] != ' ') return false;
  std::size_t start = digits - 1;
  while (start > from && !is_ascii_blank(text[start - 1])) --start;
  std::string word(text.substr(start, digits - 1 - start));
  if (!word.empty()) word.front() = static_cast<char>(word.front() | 0x20);
  static constexpr std::string_view before[] = {"am",  "im",  "der", "die", "das", "dem", "den",
                                                "des", "vom", "zum", "bis", "ab",  "seit"};
  return std::find(std::begin(before), std::end(before), word) != std::end(before);
}

// Returns whether a sentence that begins at `from` ends before `at`.
bool is_sentence_end(const Ranker& ranker, std::string_view text, std::size_t from, std::size_t at) {
  const Rank rank = ranker.at(at);
  if (rank < after_sentence || (!is_ascii_blank(text[at - 1]) && is_closer(decode_utf8(text, at).value))) return false;
  if (rank == after_sentence && is_ordinal(text, from, at)) return false;
  return rank != after_line || !is_wrapped(text, from, at);
}

}  // namespace

std::vector<Span> sentences_of(std::string_view text) {
  const Ranker ranker(text, 0, Cut::prose);
  std::vector<Span> found;
  std::size_t from = 0;
  for (std::size_t at = 1; at <= text.size(); ++at) {
    const bool last = at == text.size();
    if (!last && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) continue;
    if (!last && !is_sentence_end(ranker, text, from, at)) continue;
    for (Span rest = trimmed(text, {from, at}); !rest.empty(); rest = trimmed(text, rest)) {
      const std::size_t count = (rest.size() + limits::sentence_bytes_max - 1) / limits::sentence_bytes_max;
      const std::size_t ideal = rest.size() / count;
      const std::size_t end =
          count == 1 ? rest.end : piece_end(text, rest.start, ideal, rest.start + ideal * 14 / 10, Cut::prose);
      found.push_back(trimmed(text, {rest.start, std::min(end, rest.end)}));
      rest.start = std::min(end, rest.end);
    }
    from = at;
  }
  return found;
}

std::vector<Span> split(std::string_view text, Span span, Cut cut) {
  constexpr std::size_t enough = limits::chunk_bytes_target * 14 / 10;
  std::vector<Span> pieces;
  for (span = trimmed(text, span); span.size() > enough; span = trimmed(text, span)) {
    const std::size_t count = (span.size() + limits::chunk_bytes_target - 1) / limits::chunk_bytes_target;
    const std::size_t ideal = span.size() / count;
    const std::size_t end = piece_end(text, span.start, ideal, span.start + ideal * 14 / 10, cut);
    pieces.push_back(trimmed(text, {span.start, end}));
    span.start = end;
  }
  pieces.push_back(span);
  std::erase_if(pieces, [](Span piece) { return piece.empty(); });
  return pieces;
}

}  // namespace muniment::retrieval
