// The tokenizer of use-lite: splits a text into the most likely pieces of a unigram language model (Kudo 2018).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"

namespace muniment::retrieval {

class UnigramPieces {
 public:
  // `vocabulary` is a JSON array of [piece, score], with a score of null or a number. The first six pieces are
  // reserved; the first one stands for unknown text. Errors: corrupt.
  static Result<UnigramPieces> read(std::string_view vocabulary);

  std::size_t size() const { return lengths_.size(); }
  // Returns the ids of the text's pieces. Cuts a text at limits::use_lite_text_bytes_max.
  std::vector<std::uint32_t> ids(std::string_view text) const;

 private:
  struct End {
    double score = 0;
    std::uint32_t id = 0;
  };
  void insert(std::u32string_view piece, double score, std::uint32_t id);
  static std::uint64_t edge(std::uint32_t node, char32_t c) { return std::uint64_t{node} << 21 | c; }

  std::vector<std::size_t> lengths_;                           // by id, in characters
  std::unordered_map<std::uint64_t, std::uint32_t> children_;  // a trie: (node, character) → node; the root is 0
  std::unordered_map<std::uint32_t, End> ends_;                // nodes at which a piece ends
  std::uint32_t nodes_ = 1;
};

}  // namespace muniment::retrieval
