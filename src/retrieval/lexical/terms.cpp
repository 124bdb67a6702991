// Converts chunks and labels to terms.
#include "retrieval/lexical/terms.hpp"

#include <xapian.h>
#include <unordered_map>

#include "base/crypto/sha256.hpp"
#include "base/limits.hpp"
#include "retrieval/query/function_words.hpp"

namespace muniment::retrieval {
namespace {

constexpr std::size_t stems_kept = 50'000;  // per language; then the table is emptied
constexpr std::uint32_t title_weight = 2;   // a word of the title or the heading counts like two of the text
// Added to every chunk's length. Without it, BM25 ranks a turn of five words as twice as relevant as one of ten, so
// that the shortest chunks come first. Long chunks are hardly affected.
constexpr const char* ballast_term = "B";
constexpr std::uint32_t field_gap = 100;  // positions between fields, so that no phrase spans two fields

Xapian::Stem snowball(std::string_view language) try {
  return Xapian::Stem(language.empty() ? "none" : std::string(language));
} catch (const Xapian::InvalidArgumentError&) {
  return Xapian::Stem("none");
}

}  // namespace

struct Stemmer::State {
  std::uint32_t language = 0;  // bit of the language's function words
  Xapian::Stem stem;
  std::string tag;  // "en:"; empty if words are not stemmed
  std::unordered_map<std::string, std::string> known;

  const std::string& stem_of(const std::string& word) {
    if (known.size() >= stems_kept) known.clear();
    const auto [at, added] = known.try_emplace(word);
    if (added) at->second = tag + folded(stem(word));
    return at->second;
  }
};

Stemmer::Stemmer(std::string_view language) : state_(new State{language_bit(language), snowball(language), {}, {}}) {
  if (!state_->stem.is_none()) state_->tag = std::string(language) + ":";
}
Stemmer::Stemmer(Stemmer&&) noexcept = default;
Stemmer::~Stemmer() = default;

std::vector<std::string> Stemmer::stems_of(const Word& word) {
  if (word.kind == Word::Kind::character || word.kind == Word::Kind::pair) return {word.text};
  if (word.kind == Word::Kind::run || (languages_of_function_word(word.text) & state_->language) != 0) return {};
  std::vector<std::string> stems = {state_->stem_of(word.for_stemmer())};
  if (!word.lower.empty()) {
    const std::string& bare = state_->stem_of(word.text);
    if (bare != stems.front()) stems.push_back(bare);
  }
  return stems;
}

namespace {

// Adds a field's words after position `base` and returns the start of the next field.
std::uint32_t add_field(std::string_view text, std::uint32_t weight, std::uint32_t base, Stemmer& stemmer,
                        ChunkTerms& terms) {
  std::uint32_t last = base;
  for (Word& word : words_of(text, limits::words_per_chunk_max)) {
    last = base + word.position;
    if (word.kind == Word::Kind::whole || word.kind == Word::Kind::run) {
      terms.scored[whole_prefix + word.text] += weight;
      continue;
    }
    const std::vector<std::string> stems = stemmer.stems_of(word);
    for (const std::string& stem : stems) terms.scored[stem_prefix + stem] += weight;
    if (stems.empty() && word.capitals) terms.scored[capitals_prefix + word.text] += weight;
    if (word.kind != Word::Kind::pair) terms.placed.emplace_back(std::move(word.text), last);
  }
  return last == base ? base : last + field_gap;
}

}  // namespace

ChunkTerms terms_of(const LexicalChunk& chunk, Stemmer& stemmer) {
  ChunkTerms terms;
  terms.scored[ballast_term] = ballast_words;
  std::uint32_t base = add_field(chunk.title, title_weight, 0, stemmer, terms);
  base = add_field(chunk.heading, title_weight, base, stemmer, terms);
  add_field(chunk.text, 1, base, stemmer, terms);
  return terms;
}

std::string label_term(std::string_view label) {
  // Xapian encodes a NUL as two bytes, and limits a term to 245.
  if (label.size() <= limits::label_bytes_max && label.find('\0') == std::string_view::npos)
    return "L" + std::string(label);
  return "H" + to_hex(sha256(label));
}

std::string language_term(std::string_view language) {
  return language_prefix + std::string(language.empty() ? "none" : language.substr(0, 16));
}

std::string sortable(std::int64_t number) {
  auto bits = static_cast<std::uint64_t>(number) ^ (std::uint64_t{1} << 63);
  std::string bytes(8, '\0');
  for (std::size_t i = 8; i-- > 0; bits >>= 8) bytes[i] = static_cast<char>(bits & 0xff);
  return bytes;
}

std::int64_t number_of(std::string_view sortable) {
  if (sortable.size() != 8) return 0;
  std::uint64_t bits = 0;
  for (const char byte : sortable) bits = bits << 8 | static_cast<unsigned char>(byte);
  return static_cast<std::int64_t>(bits ^ (std::uint64_t{1} << 63));
}

}  // namespace muniment::retrieval
