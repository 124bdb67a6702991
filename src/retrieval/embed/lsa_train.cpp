// Trains an LSA model: texts → terms → tf-idf rows of length 1 → the leading singular vectors → one row of int8 codes
// per term.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include <fmt/format.h>

#include "base/crypto/sha256.hpp"
#include "base/limits.hpp"
#include "retrieval/embed/embedder.hpp"
#include "retrieval/embed/lsa_model.hpp"
#include "retrieval/embed/truncated_svd.hpp"
#include "retrieval/embed/vectors.hpp"

namespace muniment::retrieval {
namespace {

// A term of a single document carries no information about co-occurrence, but a small corpus has hardly any others.
constexpr std::size_t small_corpus_documents = 200;
constexpr std::uint32_t document_frequency_min = 2;

struct Term {
  std::string text;
  std::uint32_t document_frequency = 0;
};

struct Corpus {
  std::vector<Term> terms;
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> documents;  // (term, count)
};

Corpus read_corpus(std::span<const std::string_view> texts) {
  Corpus corpus;
  std::unordered_map<std::string, std::uint32_t> ids;
  TermReader reader;
  std::vector<std::uint32_t> read;
  for (const std::string_view text : texts) {
    read.clear();
    reader.read(text, [&](std::string_view term) {
      const auto [found, is_new] = ids.try_emplace(std::string(term), static_cast<std::uint32_t>(corpus.terms.size()));
      if (is_new) corpus.terms.push_back({found->first, 0});
      read.push_back(found->second);
    });
    corpus.documents.push_back(counted(read));
    for (const auto& [term, count] : corpus.documents.back()) ++corpus.terms[term].document_frequency;
  }
  return corpus;
}

// Returns the terms that the model keeps, as indices into corpus.terms, sorted by their bytes. If there are too many,
// it keeps the most frequent ones.
std::vector<std::uint32_t> chosen_terms(const Corpus& corpus) {
  const std::uint32_t frequency_min = corpus.documents.size() < small_corpus_documents ? 1 : document_frequency_min;
  std::vector<std::uint32_t> chosen;
  for (std::uint32_t i = 0; i < corpus.terms.size(); ++i) {
    if (corpus.terms[i].document_frequency >= frequency_min) chosen.push_back(i);
  }
  const auto by_text = [&](std::uint32_t a, std::uint32_t b) { return corpus.terms[a].text < corpus.terms[b].text; };
  if (chosen.size() > limits::lsa_terms_max) {
    std::sort(chosen.begin(), chosen.end(), [&](std::uint32_t a, std::uint32_t b) {
      const std::uint32_t fa = corpus.terms[a].document_frequency, fb = corpus.terms[b].document_frequency;
      return fa != fb ? fa > fb : by_text(a, b);
    });
    chosen.resize(limits::lsa_terms_max);
  }
  std::sort(chosen.begin(), chosen.end(), by_text);
  return chosen;
}

// ln((1 + N) / (1 + df)) + 1: never zero, so that a term of every document still distinguishes a text from an empty
// one.
float inverse_frequency(std::size_t documents, std::uint32_t frequency) {
  return static_cast<float>(stable_log((1.0 + static_cast<double>(documents)) / (1.0 + frequency)) + 1.0);
}

SparseRows weighted_rows(const Corpus& corpus, const std::vector<std::uint32_t>& chosen,
                         const std::vector<float>& idf) {
  constexpr std::uint32_t none = ~std::uint32_t{0};
  std::vector<std::uint32_t> column_of(corpus.terms.size(), none);
  for (std::uint32_t i = 0; i < chosen.size(); ++i) column_of[chosen[i]] = i;
  SparseRows rows;
  rows.columns = chosen.size();
  std::vector<std::pair<std::uint32_t, float>> entries;
  for (const auto& document : corpus.documents) {
    entries.clear();
    for (const auto& [term, count] : document) {
      if (column_of[term] != none) entries.emplace_back(column_of[term], damped_count(count) * idf[column_of[term]]);
    }
    std::sort(entries.begin(), entries.end());
    const std::size_t begin = rows.value.size();
    for (const auto& [column, value] : entries) {
      rows.column.push_back(column);
      rows.value.push_back(value);
    }
    make_unit(std::span(rows.value).subspan(begin));
    rows.row_begin.push_back(rows.value.size());
  }
  return rows;
}

void quantise(std::span<const float> row, LsaContents& model) {
  float largest = 0;
  for (const float x : row) largest = std::max(largest, std::abs(x));
  const float scale = largest / 127.0F;
  model.scales.push_back(scale);
  for (const float x : row)
    model.codes.push_back(scale > 0 ? static_cast<std::int8_t>(std::lround(x / scale)) : std::int8_t{0});
}

}  // namespace

Result<LsaModel> train_lsa(std::span<const std::string_view> texts, const LsaOptions& options) {
  if (options.dimension == 0 || options.dimension > limits::lsa_dimension_max) {
    return Error(Errc::invalid_argument, fmt::format("an LSA model has 1 to {} dimensions", limits::lsa_dimension_max));
  }
  const Corpus corpus = read_corpus(texts);
  const std::vector<std::uint32_t> chosen = chosen_terms(corpus);
  std::vector<float> idf;
  for (const std::uint32_t term : chosen)
    idf.push_back(inverse_frequency(corpus.documents.size(), corpus.terms[term].document_frequency));
  const TruncatedSvd svd = truncated_svd(weighted_rows(corpus, chosen, idf), options.dimension, options.seed);
  if (svd.singular_values.empty()) return Error(Errc::invalid_argument, "an LSA model needs texts with words in them");
  LsaContents model;
  model.dimension = static_cast<std::uint32_t>(svd.singular_values.size());
  model.documents = texts.size();
  model.seed = options.seed;
  std::vector<float> row(model.dimension);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const std::span<const float> right = svd.right.row(i);
    std::transform(right.begin(), right.end(), row.begin(), [&](float x) { return x * idf[i]; });
    model.terms.push_back(corpus.terms[chosen[i]].text);
    quantise(row, model);
  }
  return LsaModel{encode_lsa(model), to_hex(sha256(lsa_vocabulary(model)))};
}

}  // namespace muniment::retrieval
