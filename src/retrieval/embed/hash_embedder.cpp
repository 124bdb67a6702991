// The hash embedder: every word, and every run of 3 to 5 characters of a word with its edges, adds its weight with a
// sign to one dimension; both come from a hash of its bytes (feature hashing, Weinberger et al. 2009). Texts are near
// each other if they share words or most letters of words: a typo keeps half of a word's runs.
#include <algorithm>
#include <string>

#include "base/crypto/sha256.hpp"
#include "retrieval/embed/embedder.hpp"
#include "retrieval/embed/vectors.hpp"
#include "retrieval/embed/words.hpp"

namespace muniment::retrieval {
namespace {

constexpr std::size_t hash_dimension = 512;
constexpr std::size_t run_characters_min = 3;
constexpr std::size_t run_characters_max = 5;
// Relative to a word, which weighs 1. A long word has more runs and so a higher weight, as intended: it is rarer.
constexpr float run_weight = 0.35F;
constexpr float whole_weight = 0.7F;  // its parts count already
constexpr float stop_word_weight = 0.05F;
constexpr std::string_view parameters =
    "hash/1: 512 dimensions, words 1, wholes 0.7, stop words 0.05, runs of 3-5 characters 0.35, 1 + ln(count), fnv1a64 + splitmix64";

constexpr std::uint64_t fnv_offset = 0xcbf29ce484222325U;
constexpr std::uint64_t fnv_prime = 0x100000001b3U;

std::uint64_t step(std::uint64_t hash, char byte) { return (hash ^ static_cast<unsigned char>(byte)) * fnv_prime; }

// Spreads every bit over all, because FNV's low bits are weak (finaliser of splitmix64, Steele et al. 2014).
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

struct Feature {
  std::uint64_t hash;
  float weight;
};

void add_runs(std::string_view word, std::string& edged, std::vector<Feature>& features) {
  edged.assign(1, '\x02').append(word).append(1, '\x03');  // the edges of a word are part of its runs
  const auto starts_character = [&](std::size_t at) { return (static_cast<unsigned char>(edged[at]) & 0xC0) != 0x80; };
  for (std::size_t begin = 0; begin < edged.size(); ++begin) {
    if (!starts_character(begin)) continue;
    std::uint64_t hash = step(fnv_offset, 'r');
    std::size_t characters = 0;
    for (std::size_t at = begin; at < edged.size(); ++at) {
      hash = step(hash, edged[at]);
      if (at + 1 < edged.size() && !starts_character(at + 1)) continue;
      if (++characters >= run_characters_min) features.push_back({mix(hash), run_weight});
      if (characters == run_characters_max) break;
    }
  }
}

void add_features(const WordReader::Word& word, std::string& edged, std::vector<Feature>& features) {
  std::uint64_t hash = step(fnv_offset, 'w');
  for (const char byte : word.text) hash = step(hash, byte);
  const bool stop = is_stop_word(word.text);
  features.push_back({mix(hash), stop                                         ? stop_word_weight
                                 : word.kind == WordReader::Word::Kind::whole ? whole_weight
                                                                              : 1.0F});
  if (word.kind == WordReader::Word::Kind::plain && !stop) add_runs(word.text, edged, features);
}

class HashEmbedder : public Embedder {
 public:
  const EmbedderIdentity& identity() const override { return identity_; }

  Result<Vectors> embed(std::span<const std::string_view> texts, TextKind) override {
    Vectors vectors;
    vectors.reserve(texts.size());
    WordReader reader;
    std::vector<Feature> features;
    std::string edged;
    for (const std::string_view text : texts) {
      features.clear();
      for (const WordReader::Word& word : reader.read(text)) add_features(word, edged, features);
      vectors.push_back(sum(features));
    }
    return vectors;
  }

 private:
  // Sorts the features, so that equal ones are adjacent and the order of the sum does not depend on the text's.
  static std::vector<float> sum(std::vector<Feature>& features) {
    std::vector<float> vector(hash_dimension, 0.0F);
    std::sort(features.begin(), features.end(), [](const Feature& a, const Feature& b) { return a.hash < b.hash; });
    for (auto first = features.begin(); first != features.end();) {
      const auto last = std::find_if(first, features.end(), [&](const Feature& f) { return f.hash != first->hash; });
      const float weight = first->weight * damped_count(static_cast<std::size_t>(last - first));
      const std::uint64_t hash = first->hash;
      vector[hash % hash_dimension] += (hash >> 63) == 0 ? weight : -weight;
      first = last;
    }
    make_unit(vector);
    return vector;
  }

  EmbedderIdentity identity_{"hash", "1", hash_dimension, to_hex(sha256(parameters))};
};

}  // namespace

std::unique_ptr<Embedder> make_hash_embedder() { return std::make_unique<HashEmbedder>(); }

}  // namespace muniment::retrieval
