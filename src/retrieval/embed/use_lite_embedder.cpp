// Universal Sentence Encoder lite (Cer et al. 2018): two transformer layers over the pieces of a text, their mean, and
// one more layer. Texts are computed together, their pieces in consecutive rows, so that the weights are read once for
// all; each text attends only to itself.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/limits.hpp"
#include "retrieval/embed/embedder.hpp"
#include "retrieval/embed/use_lite_weights.hpp"
#include "retrieval/embed/vectors.hpp"

namespace muniment::retrieval {
namespace {

constexpr std::size_t pieces_max = 128;       // per text: the model was trained with this limit
constexpr std::size_t pieces_together = 512;  // more would exceed the cache
constexpr std::size_t heads = 4;
constexpr double norm_epsilon = 1e-6;

struct Span {
  std::size_t begin = 0, size = 0;
};

Matrix through(const Dense& dense, const Matrix& input) {
  Matrix out = multiply(input, dense.weights);
  for (std::size_t r = 0; r < out.rows; ++r) {
    const std::span<float> row = out.row(r);
    for (std::size_t c = 0; c < row.size(); ++c) row[c] += dense.bias[c];
  }
  return out;
}

void add(Matrix& to, const Matrix& what) {
  for (std::size_t i = 0; i < to.values.size(); ++i) to.values[i] += what.values[i];
}

Matrix normalised(const Matrix& input, const Norm& norm) {
  Matrix out(input.rows, input.columns);
  for (std::size_t r = 0; r < input.rows; ++r) {
    const std::span<const float> from = input.row(r);
    const auto size = static_cast<double>(from.size());
    double sum = 0, squares = 0;
    for (const float x : from) sum += static_cast<double>(x);
    const double mean = sum / size;
    for (const float x : from) squares += (static_cast<double>(x) - mean) * (static_cast<double>(x) - mean);
    const double scale = 1 / std::sqrt(squares / size + norm_epsilon);
    for (std::size_t c = 0; c < from.size(); ++c) {
      out.row(r)[c] = static_cast<float>((static_cast<double>(from[c]) - mean) * scale) * norm.scale[c] + norm.bias[c];
    }
  }
  return out;
}

void softmax(std::span<float> row) {
  const float largest = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (float& x : row) {
    const double power = stable_exp(static_cast<double>(x - largest));
    sum += power;
    x = static_cast<float>(power);
  }
  for (float& x : row) x = static_cast<float>(static_cast<double>(x) / sum);
}

// One head of one text: softmax(Q·Kᵀ)·V of its columns.
void attend(const Matrix& query_key_value, Span text, std::size_t head, std::size_t width, Matrix& out) {
  const std::size_t part = width / heads, begin = head * part;
  const float scale = 1 / std::sqrt(static_cast<float>(part));
  Matrix query(text.size, part), key(part, text.size), value(text.size, part);
  for (std::size_t r = 0; r < text.size; ++r) {
    const std::span<const float> row = query_key_value.row(text.begin + r);
    for (std::size_t c = 0; c < part; ++c) {
      query.row(r)[c] = row[begin + c] * scale;
      key.row(c)[r] = row[width + begin + c];
      value.row(r)[c] = row[2 * width + begin + c];
    }
  }
  Matrix weights = multiply(query, Panels(key));
  for (std::size_t r = 0; r < text.size; ++r) softmax(weights.row(r));
  const Matrix sums = multiply(weights, Panels(value));
  for (std::size_t r = 0; r < text.size; ++r)
    std::copy_n(sums.row(r).begin(), part, out.row(text.begin + r).begin() + static_cast<std::ptrdiff_t>(begin));
}

Matrix through(const TransformerLayer& layer, const Matrix& input, std::span<const Span> texts) {
  const Matrix query_key_value = through(layer.query_key_value, normalised(input, layer.attention_norm));
  Matrix attended(input.rows, input.columns);
  for (const Span text : texts) {
    for (std::size_t head = 0; head < heads; ++head) attend(query_key_value, text, head, input.columns, attended);
  }
  Matrix sum = through(layer.attention_output, attended);
  add(sum, layer.residual.bias.empty() ? input : through(layer.residual, input));
  Matrix wide = through(layer.widen, normalised(sum, layer.forward_norm));
  for (float& x : wide.values) x = std::max(x, 0.0F);
  add(sum, through(layer.narrow, wide));
  return sum;
}

float stable_tanh(float x) { return static_cast<float>(1 - 2 / (stable_exp(2 * static_cast<double>(x)) + 1)); }

class UseLiteEmbedder : public Embedder {
 public:
  explicit UseLiteEmbedder(UseLiteWeights weights) : weights_(std::move(weights)) {
    const std::size_t half = weights_.timescales.size();
    timing_ = Matrix(pieces_max, 2 * half);
    for (std::size_t position = 0; position < pieces_max; ++position) {
      for (std::size_t i = 0; i < half; ++i) {
        const float angle = static_cast<float>(position) * weights_.timescales[i];
        timing_.row(position)[i] = static_cast<float>(std::sin(static_cast<double>(angle)));
        timing_.row(position)[half + i] = static_cast<float>(std::cos(static_cast<double>(angle)));
      }
    }
    identity_ = {"use-lite", "1", weights_.output.bias.size(), weights_.hash};
  }

  const EmbedderIdentity& identity() const override { return identity_; }

  Result<Vectors> embed(std::span<const std::string_view> texts, TextKind) override {
    Vectors vectors(texts.size(), std::vector<float>(identity_.dimension, 0.0F));
    std::vector<std::uint32_t> ids;  // ids of all texts that are computed together
    std::vector<Span> spans;
    std::vector<std::size_t> places;  // result indices of these texts
    for (std::size_t i = 0; i < texts.size(); ++i) {
      std::vector<std::uint32_t> read = weights_.pieces.ids(texts[i]);
      read.resize(std::min(read.size(), pieces_max));
      if (!read.empty()) {
        spans.push_back({ids.size(), read.size()});
        places.push_back(i);
        ids.insert(ids.end(), read.begin(), read.end());
      }
      if (ids.size() + pieces_max <= pieces_together && i + 1 < texts.size()) continue;
      compute(ids, spans, places, vectors);
      ids.clear();
      spans.clear();
      places.clear();
    }
    return vectors;
  }

 private:
  void compute(const std::vector<std::uint32_t>& ids, const std::vector<Span>& spans,
               const std::vector<std::size_t>& places, Vectors& vectors) const {
    Matrix state(ids.size(), weights_.embeddings.columns);
    for (const Span span : spans) {
      for (std::size_t r = 0; r < span.size; ++r) {
        const std::span<const float> embedding = weights_.embeddings.row(ids[span.begin + r]), timing = timing_.row(r);
        const std::span<float> row = state.row(span.begin + r);
        for (std::size_t c = 0; c < row.size(); ++c) row[c] = 2 * embedding[c] + timing[c];
      }
    }
    for (const TransformerLayer& layer : weights_.layers) state = through(layer, state, spans);
    Matrix means(spans.size(), state.columns);
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const std::span<float> mean = means.row(i);
      for (std::size_t r = 0; r < spans[i].size; ++r) {
        for (std::size_t c = 0; c < mean.size(); ++c) mean[c] += state.row(spans[i].begin + r)[c];
      }
      for (float& x : mean) x /= static_cast<float>(spans[i].size);
    }
    const Matrix out = through(weights_.output, means);
    for (std::size_t i = 0; i < spans.size(); ++i) {
      std::transform(out.row(i).begin(), out.row(i).end(), vectors[places[i]].begin(), stable_tanh);
      make_unit(vectors[places[i]]);
    }
  }

  UseLiteWeights weights_;
  Matrix timing_;  // one row per position: encodes the position of a piece
  EmbedderIdentity identity_;
};

}  // namespace

Result<std::unique_ptr<Embedder>> open_use_lite(const std::string& folder) {
  ASSIGN_OR_RETURN(UseLiteWeights weights, load_use_lite(folder));
  return std::unique_ptr<Embedder>(std::make_unique<UseLiteEmbedder>(std::move(weights)));
}

}  // namespace muniment::retrieval
