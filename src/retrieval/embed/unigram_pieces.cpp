// Splits texts into pieces of a unigram language model.
#include "retrieval/embed/unigram_pieces.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>

#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "base/utf8.hpp"

namespace muniment::retrieval {
namespace {

constexpr std::uint32_t reserved_ids = 6;
constexpr std::uint32_t unknown_id = 0;
constexpr char32_t word_mark = 0x2581;  // stands for a space, and precedes the first word

std::u32string characters(std::string_view text) {
  std::u32string out;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint decoded = decode_utf8(text, at);
    out += decoded.size == 0 ? char32_t{0xFFFD} : decoded.value;
    at += std::max<std::size_t>(decoded.size, 1);
  }
  return out;
}

struct Free {
  void operator()(utf8proc_uint8_t* bytes) const { std::free(bytes); }
};

// NFKC with a mark before each word; any run of white space is one space.
std::u32string marked(std::string_view text) {
  if (text.size() > limits::use_lite_text_bytes_max) {
    std::size_t end = limits::use_lite_text_bytes_max;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    text = text.substr(0, end);
  }
  std::string valid;
  for (const char32_t c : characters(text)) append_utf8(valid, c);
  utf8proc_uint8_t* composed = nullptr;
  const auto size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(valid.data()), static_cast<utf8proc_ssize_t>(valid.size()),
                   &composed, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT));
  const std::unique_ptr<utf8proc_uint8_t, Free> held(composed);
  const std::u32string folded =
      size < 0 ? characters(valid)
               : characters({reinterpret_cast<const char*>(composed), static_cast<std::size_t>(size)});
  std::u32string out;
  bool space = true;
  for (const char32_t c : folded) {
    if (c == ' ' || (c >= '\t' && c <= '\r')) {
      space = true;
      continue;
    }
    if (space) out += word_mark;
    space = false;
    out += c;
  }
  return out;
}

}  // namespace

Result<UnigramPieces> UnigramPieces::read(std::string_view vocabulary) {
  const auto document = json::parse(vocabulary);
  if (!document) return Error(Errc::corrupt, "vocab.json: " + document.error().message);
  UnigramPieces pieces;
  for (const json::Value entry : document->root()) {
    const auto id = static_cast<std::uint32_t>(pieces.lengths_.size());
    auto part = entry.begin();
    if (!entry.is(json::Kind::array) || entry.size() != 2 || !(*part).is(json::Kind::string)) {
      return Error(Errc::corrupt, fmt::format("vocab.json: entry {} is not [piece, score]", id));
    }
    const std::u32string piece = characters((*part).string_or(""));
    ++part;
    if (piece.empty()) return Error(Errc::corrupt, fmt::format("vocab.json: entry {} is empty", id));
    pieces.lengths_.push_back(piece.size());
    if (id >= reserved_ids) pieces.insert(piece, (*part).as_double().value_or(0), id);
  }
  if (pieces.size() <= reserved_ids) return Error(Errc::corrupt, "vocab.json: it has no pieces");
  return pieces;
}

// The last of two equal pieces counts.
void UnigramPieces::insert(std::u32string_view piece, double score, std::uint32_t id) {
  std::uint32_t node = 0;
  for (const char32_t c : piece) {
    const auto [child, is_new] = children_.try_emplace(edge(node, c), nodes_);
    if (is_new) ++nodes_;
    node = child->second;
  }
  ends_[node] = {score, id};
}

// Viterbi, with the tie-breaking rules of the reference implementation that the model was published with: of equal
// scores the later piece wins, a score of 0 counts as unset, and a character that begins no piece is unknown and costs
// nothing.
std::vector<std::uint32_t> UnigramPieces::ids(std::string_view text) const {
  const std::u32string symbols = marked(text);
  std::vector<End> best(symbols.size() + 1);
  const auto reach = [&best](std::size_t from, std::size_t to, const End& piece) {
    const double score = piece.score + best[from].score;
    if (best[to].score == 0 || score >= best[to].score) best[to] = {score, piece.id};
  };
  for (std::size_t from = 0; from < symbols.size(); ++from) {
    bool matched = false;
    std::uint32_t node = 0;
    for (std::size_t to = from; to < symbols.size(); ++to) {
      const auto child = children_.find(edge(node, symbols[to]));
      if (child == children_.end()) break;
      node = child->second;
      if (const auto end = ends_.find(node); end != ends_.end()) {
        reach(from, to + 1, end->second);
        matched = true;
      }
    }
    if (!matched) reach(from, from + 1, {0, unknown_id});
  }
  std::vector<std::uint32_t> ids;
  for (std::size_t at = symbols.size(); at > 0;) {
    const std::uint32_t id = best[at].id;
    if (id != unknown_id || ids.empty() || ids.back() != unknown_id) ids.push_back(id);
    at -= std::min(at, id == unknown_id ? 1 : lengths_[id]);
  }
  std::reverse(ids.begin(), ids.end());
  return ids;
}

}  // namespace muniment::retrieval
