// Embeds texts with a trained LSA model: a text's vector is the sum of its terms' rows, weighted by their damped counts
// (folding in).
#include <unordered_map>

#include "base/crypto/sha256.hpp"
#include "retrieval/embed/embedder.hpp"
#include "retrieval/embed/kernels.hpp"
#include "retrieval/embed/lsa_model.hpp"
#include "retrieval/embed/vectors.hpp"

namespace muniment::retrieval {
namespace {

class LsaEmbedder : public Embedder {
 public:
  LsaEmbedder(LsaContents model, std::string hash)
      : model_(std::move(model)), identity_{"lsa", "1", model_.dimension, std::move(hash)} {
    ids_.reserve(model_.terms.size());
    for (std::uint32_t i = 0; i < model_.terms.size(); ++i) ids_.emplace(model_.terms[i], i);
  }

  const EmbedderIdentity& identity() const override { return identity_; }

  Result<Vectors> embed(std::span<const std::string_view> texts, TextKind) override {
    Vectors vectors;
    vectors.reserve(texts.size());
    TermReader reader;
    std::vector<std::uint32_t> ids;
    for (const std::string_view text : texts) {
      ids.clear();
      reader.read(text, [&](std::string_view term) {
        if (const auto found = ids_.find(term); found != ids_.end()) ids.push_back(found->second);
      });
      std::vector<float>& vector = vectors.emplace_back(identity_.dimension, 0.0F);
      for (const auto& [id, count] : counted(ids)) {
        add_scaled(vector, model_.codes.data() + std::size_t{id} * model_.dimension,
                   model_.scales[id] * damped_count(count));
      }
      make_unit(vector);
    }
    return vectors;
  }

 private:
  LsaContents model_;
  EmbedderIdentity identity_;
  std::unordered_map<std::string_view, std::uint32_t> ids_;  // into model_.terms
};

}  // namespace

Result<std::unique_ptr<Embedder>> open_lsa(std::string_view model_bytes) {
  ASSIGN_OR_RETURN(LsaContents model, decode_lsa(model_bytes));
  return std::unique_ptr<Embedder>(std::make_unique<LsaEmbedder>(std::move(model), to_hex(sha256(model_bytes))));
}

}  // namespace muniment::retrieval
