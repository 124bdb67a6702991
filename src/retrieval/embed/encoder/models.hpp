// The sentence encoders that the product knows, and the folder in which they and their runtime are installed:
//   <models>/bge-small-en-v1.5/model.onnx, tokenizer.json
//   <models>/onnxruntime-1.32.0/libonnxruntime.so
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace muniment::retrieval {

struct ModelSpec {
  std::string_view name;  // also the name of its folder
  std::size_t dimension = 0;
  std::string_view model_hash;  // hex SHA-256 of model.onnx
  std::string_view tokenizer_hash;
  std::string_view query_prefix;  // precedes a query, as the model was trained
};

std::span<const ModelSpec> known_models();
inline const ModelSpec& default_model() { return known_models().front(); }
// The version in the identity of its vectors. It changes with the model, the tokenizer and the cutting into parts.
std::string version_of(const ModelSpec& spec);
// Errors: not_found, naming the known models.
Result<const ModelSpec*> find_model(std::string_view name);

// The folder that scripts/setup uses: $XDG_CACHE_HOME/muniment/models (or below ~/.cache) if it has a model, else
// /var/cache/muniment/models if that has one, which serves every user.
std::string default_models_folder();
std::string runtime_library(const std::string& models_folder);

// The files of an installed model, whose hashes were checked.
struct ModelFiles {
  std::string model, tokenizer;
};
// Errors: not_found; corrupt if a file is not the one of the model.
Result<ModelFiles> read_model(const std::string& models_folder, const ModelSpec& spec);

// A known model, or the runtime, and what is in its place.
struct InstalledPart {
  std::string name;
  std::string state;          // installed, not installed, damaged
  std::size_t dimension = 0;  // 0: the runtime
  std::int64_t size_bytes = 0;
  std::string identity;  // identity of the vectors; for the runtime, its version
  std::string file;
};
std::vector<InstalledPart> installed_parts(const std::string& models_folder);

}  // namespace muniment::retrieval
