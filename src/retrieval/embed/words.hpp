// Splits a text into the words that the embedders count. Case, width and accents are ignored; an identifier yields
// its parts and the whole; a script without spaces yields pairs of characters. Results are identical on every
// machine: the Unicode data of an assigned character does not change between versions of utf8proc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::retrieval {

inline constexpr std::size_t word_bytes_max = 64;

// Reads one text after the other and reuses its buffers.
class WordReader {
 public:
  struct Word {
    enum class Kind : std::uint8_t {
      // A word, or a part of an identifier: "http" and "server" of HttpServer, "base" of src/base/files/file.hpp.
      plain,
      whole,  // an identifier or a path as a whole: "httpserver", "src/base/files/file.hpp"
      pair,   // two adjacent characters of a script without spaces (one, if it is isolated)
    };
    std::string_view text;
    Kind kind = Kind::plain;
  };

  // Returns the words in the order of the text, a whole after its parts. Valid until the next call. Drops the rest of a
  // word that is longer than word_bytes_max. Invalid UTF-8 separates words.
  const std::vector<Word>& read(std::string_view text);

 private:
  struct Span {
    std::size_t begin, size;
    Word::Kind kind;
  };
  void put(char32_t folded, bool upper);
  void put_folded(char32_t code_point);
  void join(char32_t joiner);
  void put_dense(char32_t code_point);
  void end_part();
  void end_whole();
  void end_dense();

  std::string bytes_;  // all words, one after the other
  std::vector<Span> spans_;
  std::vector<Word> words_;
  std::string part_, whole_;  // the part and the whole in progress
  std::size_t parts_ = 0;
  bool joined_ = false;                  // the last character was a joiner
  char32_t last_ = 0, before_last_ = 0;  // kinds of the last two characters, to split camelCase: U (upper case), l
                                         // (other), d (digit), 0 (none)
  char32_t dense_ = 0;                   // the last character of a script without spaces
  bool dense_alone_ = false;
};

// English words without topical meaning: is, the, of …
bool is_stop_word(std::string_view folded);

}  // namespace muniment::retrieval
