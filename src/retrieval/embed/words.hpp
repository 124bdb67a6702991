// A text's words, as the embedders count them: case, width and accents folded away, identifiers both as
// their parts and whole, scripts without spaces as pairs of characters. The same on every machine; what the
// Unicode tables of utf8proc say about a character that is assigned does not change between versions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::retrieval {

inline constexpr std::size_t word_bytes_max = 64;

// Reads one text after the other; its buffers are used again.
class WordReader {
 public:
  struct Word {
    enum class Kind : std::uint8_t {
      plain,  // a word, or a part of an identifier: "http" and "server" of HttpServer, "base" of
              // src/base/files/file.hpp
      whole,  // an identifier or a path as a whole: "httpserver", "src/base/files/file.hpp"
      pair,   // two neighbours of a script that writes no spaces (one, where it stands alone)
    };
    std::string_view text;
    Kind kind = Kind::plain;
  };

  // In the order of the text, a whole after its parts. Valid until the next call. Of a word longer than
  // word_bytes_max the rest is left out. What is not UTF-8 separates words.
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
  std::string part_, whole_;  // what is being read
  std::size_t parts_ = 0;
  bool joined_ = false;                  // the last character was a joiner
  char32_t last_ = 0, before_last_ = 0;  // for the humps of camelCase: U, l, d or 0
  char32_t dense_ = 0;                   // the last character of a script without spaces
  bool dense_alone_ = false;
};

// English words that say nothing about what a text is about: is, the, of …
bool is_stop_word(std::string_view folded);

}  // namespace muniment::retrieval
