// What embedding servers answer, judged before anything is done with it: as many vectors as texts, each of the
// dimension, of finite numbers, with a direction. Errors: unavailable, with what was wrong.
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

// Scores in the order of the texts: [{"index": 0, "score": 0.9}], in any order.
Result<std::vector<double>> read_rerank_answer(std::string_view json, std::size_t count);

}  // namespace muniment::retrieval
