// Checks the messages between a search child and the daemon's embedding server.
#include "retrieval/child/embed_messages.hpp"

#include <cmath>
#include <cstring>

namespace muniment::retrieval {

namespace {

constexpr double length_error_max = 1e-5;

bool is_unit_or_zero(const std::vector<float>& vector) {
  double square = 0;
  for (const float x : vector) square += static_cast<double>(x) * static_cast<double>(x);
  return square == 0 || std::abs(square - 1) < length_error_max;  // false if it is not finite
}

}  // namespace

std::string_view first_characters(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  while (bytes_max > 0 && (static_cast<unsigned char>(text[bytes_max]) & 0xC0U) == 0x80U) --bytes_max;
  return text.substr(0, bytes_max);
}

EmbeddedTexts packed(const Vectors& vectors, std::size_t dimension) {
  EmbeddedTexts out{static_cast<std::uint32_t>(dimension), {}};
  out.numbers.reserve(vectors.size() * dimension * sizeof(float));
  for (const std::vector<float>& vector : vectors) {
    out.numbers.append(reinterpret_cast<const char*>(vector.data()), vector.size() * sizeof(float));
  }
  return out;
}

Result<Vectors> unpacked(const EmbeddedTexts& answer, std::size_t count, std::size_t dimension) {
  const std::size_t bytes = dimension * sizeof(float);
  if (answer.dimension != dimension || answer.numbers.size() != count * bytes) {
    return Error(Errc::corrupt, "an answer of " + std::to_string(answer.numbers.size()) + " bytes for " +
                                    std::to_string(count) + " vectors of " + std::to_string(dimension) + " dimensions");
  }
  Vectors vectors(count, std::vector<float>(dimension));
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(vectors[i].data(), answer.numbers.data() + i * bytes, bytes);
    if (!is_unit_or_zero(vectors[i])) return Error(Errc::corrupt, "an answer contains an invalid vector");
  }
  return vectors;
}

}  // namespace muniment::retrieval
