// What training an LSA model and using one share: which words of a text are terms, and the model as bytes
// (docs/format.md, "LSA model").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "retrieval/embed/words.hpp"

namespace muniment::retrieval {

// The words of a text that are terms, in its order: no stop words, plurals as singulars.
class TermReader {
 public:
  template <typename Use>  // void(std::string_view term); the view is valid only during the call
  void read(std::string_view text, const Use& use) {
    for (const WordReader::Word& word : words_.read(text)) {
      if (is_stop_word(word.text)) continue;
      use(term_of(word));
    }
  }

 private:
  std::string_view term_of(const WordReader::Word& word);
  WordReader words_;
  std::string stem_;
};

// Ids to (id, how often), sorted by id.
std::vector<std::pair<std::uint32_t, std::uint32_t>> counted(std::vector<std::uint32_t>& ids);

struct LsaContents {
  std::uint32_t dimension = 0;
  std::uint64_t documents = 0;  // that it was trained on
  std::uint64_t seed = 0;
  std::vector<std::string> terms;  // sorted by their bytes, each once
  // What a term adds to a text's vector: scale × its `dimension` codes. Its idf is in there.
  std::vector<float> scales;
  std::vector<std::int8_t> codes;
};

std::string lsa_vocabulary(const LsaContents& model);  // its bytes in the model
std::string encode_lsa(const LsaContents& model);
Result<LsaContents> decode_lsa(std::string_view bytes);  // Errors: corrupt

}  // namespace muniment::retrieval
