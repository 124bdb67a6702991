// Parses and checks the answers of embedding servers: as many vectors as texts, of the expected dimension, with finite
// numbers and non-zero length. Errors: unavailable, with the fault.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "retrieval/embed/embedder.hpp"

namespace muniment::retrieval {

struct Expected {
  std::size_t count = 0;
  std::size_t dimension = 0;  // 0: that of the first vector
};

// Vectors in the order of the texts, of unit length.
Result<Vectors> read_openai_answer(std::string_view json,
                                   const Expected& expected);  // {"data": [{"index": 0, "embedding": […]}]}
Result<Vectors> read_ollama_answer(std::string_view json, const Expected& expected);  // {"embeddings": [[…]]}
Result<Vectors> read_tei_answer(std::string_view json, const Expected& expected);     // [[…]]

// Scores in the order of the texts, from [{"index": 0, "score": 0.9}] in any order.
Result<std::vector<double>> read_rerank_answer(std::string_view json, std::size_t count);

}  // namespace muniment::retrieval
