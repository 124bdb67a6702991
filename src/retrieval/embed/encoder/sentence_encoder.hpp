// The sentence encoder: a transformer whose first token's vector has the meaning of a text (Xiao et al. 2023, BGE).
#pragma once

#include <memory>
#include <string>

#include "retrieval/embed/embedder.hpp"
#include "retrieval/embed/encoder/models.hpp"
#include "retrieval/embed/encoder/onnx_runtime.hpp"
#include "retrieval/embed/encoder/wordpiece.hpp"

namespace muniment::retrieval {

class SentenceEncoder : public Embedder {
 public:
  // `keeps` lives as long as the model, whose code it may hold.
  SentenceEncoder(const ModelSpec& spec, WordPiece pieces, std::unique_ptr<TokenModel> model,
                  std::shared_ptr<const void> keeps);

  const EmbedderIdentity& identity() const override { return identity_; }
  bool reads_titles() const override { return true; }
  // A vector depends on its text alone: texts are not padded to a batch, since the model quantizes its activations by
  // the largest in a batch. A text has no features, and so the zero vector, if the vocabulary cannot spell half of its
  // words, or if the model returns a number that is not finite; a query of the latter kind is `unavailable`.
  Result<Vectors> embed(std::span<const std::string_view> texts, TextKind kind) override;
  Result<std::vector<Vectors>> embed_parts(std::span<const std::string_view> documents) override;

 private:
  Result<std::vector<float>> vector_of(std::span<const std::int64_t> ids) const;
  std::vector<std::vector<std::int64_t>> parts_of(std::string_view document) const;

  const ModelSpec spec_;
  const WordPiece pieces_;
  const std::shared_ptr<const void> keeps_;
  const std::unique_ptr<TokenModel> model_;
  EmbedderIdentity identity_;
};

// Opens an installed model. Errors: not_found, with "<what> is not installed"; unavailable and corrupt as
// OnnxRuntime::load, OnnxRuntime::open and read_model.
Result<std::unique_ptr<Embedder>> open_encoder(const std::string& models_folder,
                                               const ModelSpec& spec = default_model());

}  // namespace muniment::retrieval
