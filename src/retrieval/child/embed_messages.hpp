// Messages by which a search child asks the embedding server through the daemon. Neither side trusts the other: a
// hostile document may control the child, and the daemon forwards what an external server sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "retrieval/child/wire.hpp"
#include "retrieval/embed/embedder.hpp"

namespace muniment::retrieval {

struct EmbedTask {
  TextKind kind = TextKind::document;
  std::vector<std::string> texts;
};

// The vectors one after another, in the machine's float format.
struct EmbeddedTexts {
  std::uint32_t dimension = 0;
  std::string numbers;
};

// Indices of a child's embedding channels, after all of its other channels.
inline constexpr std::size_t document_channel = 0;
inline constexpr std::size_t query_channel = 1;

constexpr TextKind last_of(TextKind) { return TextKind::document; }

template <typename Archive, Of<EmbedTask> T>
void members(Archive& archive, T& it) {
  archive(it.kind, it.texts);
}

template <typename Archive, Of<EmbeddedTexts> T>
void members(Archive& archive, T& it) {
  archive(it.dimension, it.numbers);
}

// Returns at most that many leading bytes of the text, cut between characters.
std::string_view first_characters(std::string_view text, std::size_t bytes_max);

EmbeddedTexts packed(const Vectors& vectors, std::size_t dimension);

// Errors: corrupt unless the answer has `count` vectors of that dimension, each of unit length or all zero.
Result<Vectors> unpacked(const EmbeddedTexts& answer, std::size_t count, std::size_t dimension);

}  // namespace muniment::retrieval
