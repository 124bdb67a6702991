// Embedders: from text to a vector of unit length. Each has an identity that is stored with every
// vector; vectors of two identities are never compared.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace muniment::retrieval {

struct EmbedderIdentity {
  std::string name;  // lsa, hash, use-lite, http
  std::string version;
  std::size_t dimension = 0;
  std::string hash;          // hex SHA-256 of its weights or parameters
  std::string text() const;  // "lsa/1/128/4f2a…" (16 digits of the hash): the key of its vectors
};

enum class TextKind : std::uint8_t { query, document };

using Vectors = std::vector<std::vector<float>>;  // unit length, or all zero where there is nothing to go by

class Embedder {
 public:
  virtual ~Embedder() = default;
  virtual const EmbedderIdentity& identity() const = 0;
  // One vector a text. May be called from several threads. Errors, of a remote one: unavailable when it is gone, slow
  // or talks nonsense; denied when its key does not do; invalid_argument when it refuses a text, in its words.
  virtual Result<Vectors> embed(std::span<const std::string_view> texts, TextKind kind) = 0;
};

// Hashed words and 3–5-character n-grams: from the first document on, robust against typos.
std::unique_ptr<Embedder> make_hash_embedder();

// Latent semantic analysis: tf-idf and a truncated SVD of a corpus. Training is deterministic.
struct LsaModel {
  std::string bytes;            // the model as it is stored in an artifact: docs/format.md
  std::string vocabulary_hash;  // hex
};
struct LsaOptions {
  std::size_t dimension = 256;
  std::uint64_t seed = 1;
};
Result<LsaModel> train_lsa(std::span<const std::string_view> texts, const LsaOptions& options);
Result<std::unique_ptr<Embedder>> open_lsa(std::string_view model_bytes);  // Errors: corrupt

// Universal Sentence Encoder lite, in process. `folder` holds the weights and vocab.json as version 0.2.0 of the npm
// package lays them out. A text's first 128 pieces count. Errors: not_found (it is not installed), corrupt.
Result<std::unique_ptr<Embedder>> open_use_lite(const std::string& folder);
// Where scripts/setup puts them: $XDG_CACHE_HOME/muniment/use-lite-0.2.0, or ~/.cache instead.
std::string use_lite_default_folder();

// OpenAI-compatible, Ollama and TEI servers. What they answer is checked (count, order, dimension, numbers) and made
// unit length; a text of white space is the zero vector without asking. A text that is too long for the model is
// refused, not cut.
struct HttpEmbedderOptions {
  std::string url;  // the base, or the endpoint itself
  std::string api;  // openai, ollama, tei; empty: told from the url's path
  std::string model;
  std::string key_file;              // holds a bearer token; may be empty
  std::string query_prefix;          // put before queries, as some models want
  std::size_t dimension = 0;         // expected; 0: the server is asked when it is opened
  std::int64_t timeout_ms = 10'000;  // of one batch, with the one retry
  std::size_t batch_texts_max = 32;
  std::function<bool()> given_up;  // looked at now and then: the answer is not wanted any more
};
// Errors: invalid_argument, those of reading the key, and where the dimension is asked for those of embed().
Result<std::unique_ptr<Embedder>> open_http(const HttpEmbedderOptions& options);

}  // namespace muniment::retrieval
