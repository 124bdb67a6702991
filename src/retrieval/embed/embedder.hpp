// Embedders: turn a text into a vector of unit length. Each has an identity that is stored with every vector; vectors
// of different identities are never compared.
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
  std::string name;  // lsa, hash, encoder, http
  std::string version;
  std::size_t dimension = 0;
  std::string hash;          // hex SHA-256 of its weights or parameters
  std::string text() const;  // "lsa/1/128/4f2a…" (16 digits of the hash): the key of its vectors
};

enum class TextKind : std::uint8_t { query, document };

using Vectors = std::vector<std::vector<float>>;  // unit length, or all zero if a text has no features

class Embedder {
 public:
  virtual ~Embedder() = default;
  virtual const EmbedderIdentity& identity() const = 0;
  // Returns whether the title of its document precedes a passage.
  virtual bool reads_titles() const { return false; }
  // Returns one vector per text. Any thread. Errors of a remote embedder: unavailable if it is unreachable, slow or
  // returns invalid data; denied if it refuses the key; invalid_argument if it refuses a text, with its message.
  virtual Result<Vectors> embed(std::span<const std::string_view> texts, TextKind kind) = 0;
  // Returns the vectors of each document: at least one, and one per part of a document that is longer than the embedder
  // reads at once. Errors: as embed().
  virtual Result<std::vector<Vectors>> embed_parts(std::span<const std::string_view> documents);
};

// Hashed words and n-grams of 3 to 5 characters: needs no training and tolerates typos.
std::unique_ptr<Embedder> make_hash_embedder();

// Latent semantic analysis: tf-idf and a truncated SVD of a corpus. Training is deterministic.
struct LsaModel {
  std::string bytes;            // the model as stored in an artifact: docs/format.md
  std::string vocabulary_hash;  // hex
};
struct LsaOptions {
  std::size_t dimension = 256;
  std::uint64_t seed = 1;
};
Result<LsaModel> train_lsa(std::span<const std::string_view> texts, const LsaOptions& options);
Result<std::unique_ptr<Embedder>> open_lsa(std::string_view model_bytes);  // Errors: corrupt

// Options for OpenAI-compatible, Ollama and TEI servers. Answers are checked (count, order, dimension, numbers) and
// normalized; a text of white space gets the zero vector without a request. A text that is too long for the model is
// refused, not cut.
struct HttpEmbedderOptions {
  std::string url;  // the base, or the endpoint itself
  std::string api;  // openai, ollama, tei; empty: derived from the url's path
  std::string model;
  std::string key_file;              // holds a bearer token; may be empty
  std::string query_prefix;          // prepended to queries, as some models require
  std::size_t dimension = 0;         // expected; 0: asked from the server when it is opened
  std::int64_t timeout_ms = 10'000;  // for one batch, including the one retry
  std::size_t batch_texts_max = 32;
  std::function<bool()> given_up;  // polled; true: the answer is not needed any more
};
// Errors: invalid_argument, those of reading the key, and those of embed() if the dimension is asked for.
Result<std::unique_ptr<Embedder>> open_http(const HttpEmbedderOptions& options);

}  // namespace muniment::retrieval
