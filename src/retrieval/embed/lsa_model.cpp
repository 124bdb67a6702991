// Encodes and decodes LSA models, and reads the terms of texts.
#include "retrieval/embed/lsa_model.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "base/crypto/sha256.hpp"
#include "base/limits.hpp"
#include "base/utf8.hpp"

namespace muniment::retrieval {
namespace {

constexpr std::string_view magic = "muniment-lsa/1\n";
constexpr std::size_t hash_bytes = 32;

void put(std::string& out, std::uint64_t value, int bytes) {
  for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xFF);
}

// Takes values from the front of the bytes; fails once too few are left.
class Taker {
 public:
  explicit Taker(std::string_view bytes) : left_(bytes) {}
  std::string_view bytes(std::size_t count) {
    if (count > left_.size()) {
      short_ = true;
      return {};
    }
    const std::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    return taken;
  }
  std::uint64_t number(std::size_t count) {
    std::uint64_t value = 0;
    for (const char byte : bytes(count)) value = value << 8 | static_cast<unsigned char>(byte);
    return value;
  }
  std::size_t left() const { return left_.size(); }
  bool short_of_bytes() const { return short_; }

 private:
  std::string_view left_;
  bool short_ = false;
};

Error corrupt(std::string_view what) { return Error(Errc::corrupt, fmt::format("LSA model: {}", what)); }

Status take_terms(Taker& from, std::size_t count, std::vector<std::string>& terms) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view term = from.bytes(from.number(1));
    if (from.short_of_bytes()) return corrupt("the vocabulary ends early");
    if (term.empty() || term.size() > word_bytes_max || first_invalid_utf8(term) != std::string_view::npos) {
      return corrupt(fmt::format("term {} is not a word", i));
    }
    if (i > 0 && !(terms.back() < term)) return corrupt(fmt::format("term {} is not in its place", i));
    terms.emplace_back(term);
  }
  return success();
}

Status take_rows(Taker& from, LsaContents& model) {
  const std::size_t row_bytes = 4 + std::size_t{model.dimension};
  if (from.left() != model.terms.size() * row_bytes) return corrupt("the size of the rows does not match the header");
  model.scales.reserve(model.terms.size());
  model.codes.reserve(model.terms.size() * model.dimension);
  for (std::size_t i = 0; i < model.terms.size(); ++i) {
    const float scale = std::bit_cast<float>(static_cast<std::uint32_t>(from.number(4)));
    // Larger scales could make sums overflow; a negative scale would be a second encoding of the same row.
    if (!(scale >= 0 && scale <= 1e6F) || std::signbit(scale)) return corrupt(fmt::format("row {} has no scale", i));
    model.scales.push_back(scale);
    for (const char code : from.bytes(model.dimension)) {
      const auto value = static_cast<std::int8_t>(code);
      if (value == -128) return corrupt(fmt::format("row {} has a code beyond -127", i));
      model.codes.push_back(value);
    }
  }
  return success();
}

}  // namespace

// Reduces English plurals to their singular and does no more (a weak stemmer, after Harman 1991): a stronger stemmer
// improves this lane alone but not the fusion, whose lexical lane stems already.
std::string_view TermReader::term_of(const WordReader::Word& word) {
  if (word.kind != WordReader::Word::Kind::plain || !word.text.ends_with('s')) return word.text;
  const auto ends_with = [&word](std::string_view ending) {
    return word.text.size() > ending.size() + 2 && word.text.ends_with(ending);
  };
  const std::string_view text = word.text;
  if (ends_with("ies")) return stem_.assign(text.substr(0, text.size() - 3)).append("y");
  if (ends_with("sses") || ends_with("shes") || ends_with("ches") || ends_with("xes"))
    return text.substr(0, text.size() - 2);
  if (!ends_with("s") || text.ends_with("ss") || text.ends_with("us") || text.ends_with("is")) return text;
  return text.substr(0, text.size() - 1);
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> counted(std::vector<std::uint32_t>& ids) {
  std::sort(ids.begin(), ids.end());
  std::vector<std::pair<std::uint32_t, std::uint32_t>> counts;
  for (const std::uint32_t id : ids) {
    if (!counts.empty() && counts.back().first == id) {
      ++counts.back().second;
    } else {
      counts.emplace_back(id, 1);
    }
  }
  return counts;
}

std::string lsa_vocabulary(const LsaContents& model) {
  std::string bytes;
  for (const std::string& term : model.terms) bytes += static_cast<char>(term.size()) + term;
  return bytes;
}

std::string encode_lsa(const LsaContents& model) {
  std::string bytes(magic);
  put(bytes, model.dimension, 4);
  put(bytes, model.terms.size(), 4);
  put(bytes, model.documents, 8);
  put(bytes, model.seed, 8);
  bytes += lsa_vocabulary(model);
  bytes.reserve(bytes.size() + model.terms.size() * (4 + model.dimension) + hash_bytes);
  for (std::size_t i = 0; i < model.terms.size(); ++i) {
    put(bytes, std::bit_cast<std::uint32_t>(model.scales[i]), 4);
    for (std::size_t c = 0; c < model.dimension; ++c) bytes += static_cast<char>(model.codes[i * model.dimension + c]);
  }
  return bytes += std::string(view(sha256(bytes)));
}

Result<LsaContents> decode_lsa(std::string_view bytes) {
  if (!bytes.starts_with(magic)) return corrupt("it does not begin with muniment-lsa/1");
  if (bytes.size() < magic.size() + hash_bytes) return corrupt("it ends early");
  const std::string_view hashed = bytes.substr(0, bytes.size() - hash_bytes);
  if (view(sha256(hashed)) != bytes.substr(hashed.size())) return corrupt("its checksum does not match");
  Taker from(hashed.substr(magic.size()));
  LsaContents model;
  model.dimension = static_cast<std::uint32_t>(from.number(4));
  const std::size_t terms = from.number(4);
  model.documents = from.number(8);
  model.seed = from.number(8);
  if (from.short_of_bytes()) return corrupt("it ends early");
  if (model.dimension == 0 || model.dimension > limits::lsa_dimension_max) {
    return corrupt(fmt::format("{} dimensions; it has 1 to {}", model.dimension, limits::lsa_dimension_max));
  }
  if (terms == 0 || terms > limits::lsa_terms_max)
    return corrupt(fmt::format("{} terms; it has 1 to {}", terms, limits::lsa_terms_max));
  RETURN_IF_ERROR(take_terms(from, terms, model.terms));
  RETURN_IF_ERROR(take_rows(from, model));
  return model;
}

}  // namespace muniment::retrieval
