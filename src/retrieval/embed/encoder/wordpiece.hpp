// The tokenizer of BERT's uncased models: splits a text into words and punctuation without case and accents, and each
// word into the longest pieces of a vocabulary (Devlin et al. 2019).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"

namespace muniment::retrieval {

class WordPiece {
 public:
  // `tokenizer` is the file tokenizer.json of a model: WordPiece with BertNormalizer, in lower case. Errors: corrupt.
  static Result<WordPiece> read(std::string_view tokenizer);

  struct Pieces {
    std::vector<std::int64_t> ids;  // without [CLS] and [SEP]
    std::vector<bool> begins_word;  // whether the piece with the same index begins a word
    std::size_t unknown = 0;        // number of words that the vocabulary cannot spell: [UNK]
    std::size_t words = 0;
    std::size_t letters = 0;  // characters of category L …
    std::size_t latin = 0;    // … and those of the Latin script among them
  };
  // Reads the text up to the first word past `pieces_max` pieces; the result has at most that number. Names of special
  // tokens in a text, such as "[SEP]", are plain text. Skips invalid UTF-8.
  Pieces split(std::string_view text, std::size_t pieces_max) const;

  std::int64_t begin_id() const { return begin_; }  // [CLS]
  std::int64_t end_id() const { return end_; }      // [SEP]

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  using Vocabulary = std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>>;

  void put_word(std::string_view word, Pieces& pieces, std::size_t pieces_max) const;

  Vocabulary first_, continued_;  // continued_: without the prefix "##"
  std::size_t longest_ = 0;       // bytes of the longest piece
  std::int64_t begin_ = 0, end_ = 0, unknown_ = 0;
};

}  // namespace muniment::retrieval
