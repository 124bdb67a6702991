// ONNX Runtime, loaded at run time: neither its header nor its library is needed to build. It runs models on the CPU.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace muniment::retrieval {

// A transformer that maps token ids to one vector per token.
class TokenModel {
 public:
  virtual ~TokenModel() = default;
  virtual std::size_t dimension() const = 0;
  // Returns the vectors of the last layer, one after the other: ids.size() × dimension(). Any thread; runs on the
  // calling thread alone. Errors: unavailable.
  virtual Result<std::vector<float>> run(std::span<const std::int64_t> ids) const = 0;
};

// The version that the product was tested with; another one is refused.
inline constexpr std::string_view onnx_runtime_version = "1.32.0";

// A library stays loaded for the lifetime of the process.
class OnnxRuntime {
 public:
  // Errors: not_found; unavailable if it cannot be loaded or has another version.
  static Result<std::shared_ptr<const OnnxRuntime>> load(const std::string& library);
  virtual ~OnnxRuntime() = default;

  // Opens a model of BERT's shape: the inputs input_ids, attention_mask and token_type_ids of int64, [texts, tokens];
  // the output last_hidden_state of float, [texts, tokens, dimension]. `bytes` is not used after the return. Errors:
  // corrupt if it is not a model or has another shape; unavailable.
  virtual Result<std::unique_ptr<TokenModel>> open(std::string_view bytes, std::size_t dimension) const = 0;
};

}  // namespace muniment::retrieval
