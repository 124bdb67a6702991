// Normalizes text and splits it into the pieces of a vocabulary. The rules are those of the tokenizer that the models
// were published with; tests/golden/retrieval/wordpiece.json holds its results.
#include "retrieval/embed/encoder/wordpiece.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/json/json.hpp"
#include "base/utf8.hpp"

namespace muniment::retrieval {
namespace {

constexpr std::size_t word_characters_max = 100;  // a longer word is unknown

Error not_a_tokenizer(const std::string& why) { return Error(Errc::corrupt, "tokenizer.json: " + why); }

// Characters that are words of their own.
bool is_cjk(char32_t c) {
  constexpr std::array<std::pair<char32_t, char32_t>, 8> ranges = {{{0x4E00, 0x9FFF},
                                                                    {0x3400, 0x4DBF},
                                                                    {0x20000, 0x2A6DF},
                                                                    {0x2A700, 0x2B73F},
                                                                    {0x2B740, 0x2B81F},
                                                                    {0x2B920, 0x2CEAF},
                                                                    {0xF900, 0xFAFF},
                                                                    {0x2F800, 0x2FA1F}}};
  return std::any_of(ranges.begin(), ranges.end(),
                     [c](const auto& range) { return c >= range.first && c <= range.second; });
}

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  const auto kind = category(c);
  return c == 0x85 || kind == UTF8PROC_CATEGORY_ZS || kind == UTF8PROC_CATEGORY_ZL || kind == UTF8PROC_CATEGORY_ZP;
}

// Control characters, except those that are white space for the tokenizer.
bool is_dropped(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  if (c == 0 || c == 0xFFFD) return true;
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_CC || kind == UTF8PROC_CATEGORY_CF || kind == UTF8PROC_CATEGORY_CO ||
         kind == UTF8PROC_CATEGORY_CS;
}

bool is_punctuation(char32_t c) {
  if (c < 0x80) return c > ' ' && c < 0x7F && !(c >= '0' && c <= '9') && !((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO;
}

// Appends the character in lower case without accents.
void append_folded(std::string& word, char32_t c) {
  if (c < 0x80) {
    word += static_cast<char>(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
    return;
  }
  std::array<utf8proc_int32_t, 8> parts{};
  int last = 0;
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(), std::ssize(parts),
                                             UTF8PROC_DECOMPOSE, &last);
  if (count < 0 || count > std::ssize(parts)) return append_utf8(word, c);
  for (utf8proc_ssize_t i = 0; i < count; ++i) {
    const utf8proc_int32_t part = parts[static_cast<std::size_t>(i)];
    if (utf8proc_category(part) == UTF8PROC_CATEGORY_MN) continue;
    append_utf8(word, static_cast<char32_t>(utf8proc_tolower(part)));
  }
}

bool is_letter(char32_t c) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;  // LU, LL, LT, LM, LO
}

// The blocks Basic Latin to Latin Extended-B, and Latin Extended Additional.
bool is_latin(char32_t c) { return c < 0x250 || (c >= 0x1E00 && c <= 0x1EFF); }

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

}  // namespace

Result<WordPiece> WordPiece::read(std::string_view tokenizer) {
  const auto document = json::parse(tokenizer);
  if (!document) return not_a_tokenizer(document.error().message);
  const json::Value model = document->root()["model"], normalizer = document->root()["normalizer"];
  if (model["continuing_subword_prefix"].string_or("") != "##" ||
      normalizer["type"].string_or("") != "BertNormalizer" || !normalizer["lowercase"].as_bool().value_or(false))
    return not_a_tokenizer("it is not the WordPiece tokenizer of an uncased model");
  WordPiece pieces;
  std::int64_t found = 0;
  for (const json::Value member : model["vocab"]) {
    const std::string piece = member.key();
    const auto id = member.as_int();
    if (piece.empty() || !id || *id < 0) return not_a_tokenizer("an entry of the vocabulary is malformed");
    if (piece == "[CLS]") pieces.begin_ = *id, ++found;
    if (piece == "[SEP]") pieces.end_ = *id, ++found;
    if (piece == "[UNK]") pieces.unknown_ = *id, ++found;
    pieces.longest_ = std::max(pieces.longest_, piece.size());
    if (piece.size() > 2 && piece.starts_with("##"))
      pieces.continued_.emplace(piece.substr(2), *id);
    else
      pieces.first_.emplace(piece, *id);
  }
  if (found != 3) return not_a_tokenizer("the vocabulary lacks [CLS], [SEP] or [UNK]");
  return pieces;
}

WordPiece::Pieces WordPiece::split(std::string_view text, std::size_t pieces_max) const {
  Pieces pieces;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty() && pieces.ids.size() < pieces_max) put_word(word, pieces, pieces_max);
    word.clear();
  };
  for (std::size_t at = 0; at < text.size() && pieces.ids.size() < pieces_max;) {
    const CodePoint c = decode_utf8(text, at);
    at += std::max<std::size_t>(c.size, 1);
    if (c.size == 0 || is_dropped(c.value)) continue;
    if (is_letter(c.value)) {
      ++pieces.letters;
      if (is_latin(c.value)) ++pieces.latin;
    }
    if (is_space(c.value)) {
      end_word();
    } else if (is_cjk(c.value) || is_punctuation(c.value)) {
      end_word();
      append_folded(word, c.value);
      end_word();
    } else if (word.size() <= 4 * word_characters_max) {  // past this size, the word is unknown whatever follows
      append_folded(word, c.value);
    }
  }
  end_word();
  return pieces;
}

void WordPiece::put_word(std::string_view word, Pieces& pieces, std::size_t pieces_max) const {
  const std::size_t before = pieces.ids.size();
  ++pieces.words;
  const auto put = [&](std::int64_t id) {
    pieces.begins_word.push_back(pieces.ids.size() == before);
    pieces.ids.push_back(id);
  };
  const auto no_piece = [&] {
    pieces.ids.resize(before);
    pieces.begins_word.resize(before);
    ++pieces.unknown;
    put(unknown_);
  };
  const auto characters = std::count_if(word.begin(), word.end(), begins_character);
  if (static_cast<std::size_t>(characters) > word_characters_max) return no_piece();
  for (std::size_t from = 0; from < word.size();) {
    const Vocabulary& vocabulary = from == 0 ? first_ : continued_;
    std::size_t size = std::min(word.size() - from, longest_);
    auto found = vocabulary.end();
    for (; size > 0; --size) {
      if (from + size < word.size() && !begins_character(word[from + size])) continue;
      if (found = vocabulary.find(word.substr(from, size)); found != vocabulary.end()) break;
    }
    if (found == vocabulary.end()) return no_piece();
    put(found->second);
    from += size;
  }
  if (pieces.ids.size() > pieces_max) {
    pieces.ids.resize(pieces_max);
    pieces.begins_word.resize(pieces_max);
  }
}

}  // namespace muniment::retrieval
