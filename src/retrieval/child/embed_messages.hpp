// What a search child asks of the embedding server, through the daemon, and what comes back. Neither side
// believes the other: the child may have been taken over by a document, and what the daemon passes on is
// a stranger's.
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

// The vectors one after another, as the machine has its floats.
struct EmbeddedTexts {
  std::uint32_t dimension = 0;
  std::string numbers;
};

// The places of a child's embedding channels, which come after all of its others.
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

// The text's first bytes, at most so many, and no part of a character.
std::string_view first_characters(std::string_view text, std::size_t bytes_max);

EmbeddedTexts packed(const Vectors& vectors, std::size_t dimension);

// Errors: corrupt, unless they are so many vectors of that dimension, each of unit length or all zero.
Result<Vectors> unpacked(const EmbeddedTexts& answer, std::size_t count, std::size_t dimension);

}  // namespace muniment::retrieval
