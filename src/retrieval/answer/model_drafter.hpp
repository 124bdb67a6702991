// The drafter that asks a language model on a server: OpenAI's /v1/chat/completions (also llama.cpp, vLLM, Ollama) or
// Ollama's /api/chat. Every sentence of its draft is held against the passages that it cites.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "retrieval/answer/drafter.hpp"

namespace muniment::retrieval {

struct AnswerModelOptions {
  std::string url;  // the base, or the path of an API; empty: no model
  std::string api;  // openai, ollama; empty: derived from the URL's path, otherwise openai
  std::string model;
  std::string key_file;  // holds a bearer token; may be empty
  std::int64_t timeout_ms = 0;
  bool drop_unsupported = false;  // drops sentences that no passage carries, instead of marking them
};

class ModelDrafter final : public Drafter {
 public:
  explicit ModelDrafter(AnswerModelOptions options) : options_(std::move(options)) {}
  std::string_view name() const override { return is_ollama() ? "ollama/1" : "openai/1"; }
  const std::string& model() const { return options_.model; }
  // No sentence: the model found no answer. Any thread. Errors: unavailable if the server or its reply fails, or none
  // of the model's sentences is carried and they are dropped; those of HttpService.
  Result<Draft> draft(const DraftRequest& request, Deadline deadline) const override;

 private:
  bool is_ollama() const;
  Result<std::string> ask(const std::string& prompt, Deadline deadline) const;

  const AnswerModelOptions options_;
  mutable std::atomic<int> busy_ = 0;
};

// Returns the sentences of a model's text with their citations; exposed for tests. `passages`: their number.
std::vector<std::pair<std::string, std::vector<std::size_t>>> cited_sentences(std::string_view text,
                                                                              std::size_t passages);

}  // namespace muniment::retrieval
