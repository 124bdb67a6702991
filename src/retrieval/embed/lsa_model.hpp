// The parts that training and using an LSA model share: the terms of a text, and the model's encoding (docs/format.md,
// "LSA model").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "retrieval/embed/words.hpp"

namespace muniment::retrieval {

// Reads the terms of a text in order: no stop words, plurals as singulars.
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

// Converts ids to (id, count), sorted by id.
std::vector<std::pair<std::uint32_t, std::uint32_t>> counted(std::vector<std::uint32_t>& ids);

struct LsaContents {
  std::uint32_t dimension = 0;
  std::uint64_t documents = 0;  // number of training documents
  std::uint64_t seed = 0;
  std::vector<std::string> terms;  // sorted by their bytes, without duplicates
  // A term adds scale × its `dimension` codes to a text's vector. The scale includes its idf.
  std::vector<float> scales;
  std::vector<std::int8_t> codes;
};

std::string lsa_vocabulary(const LsaContents& model);  // its bytes in the model
std::string encode_lsa(const LsaContents& model);
Result<LsaContents> decode_lsa(std::string_view bytes);  // Errors: corrupt

}  // namespace muniment::retrieval
