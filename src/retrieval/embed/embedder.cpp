// The parts that all embedders share.
#include "retrieval/embed/embedder.hpp"

namespace muniment::retrieval {

std::string EmbedderIdentity::text() const {
  return name + "/" + version + "/" + std::to_string(dimension) + "/" + hash.substr(0, 16);
}

Result<std::vector<Vectors>> Embedder::embed_parts(std::span<const std::string_view> documents) {
  ASSIGN_OR_RETURN(Vectors vectors, embed(documents, TextKind::document));
  std::vector<Vectors> parts;
  for (std::vector<float>& vector : vectors) parts.emplace_back().push_back(std::move(vector));
  return parts;
}

}  // namespace muniment::retrieval
