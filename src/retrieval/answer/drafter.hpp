// Drafts: answers to a question made of sentences, each of which cites spans of the passages of a context pack. A
// drafter decides which sentences answer; it neither searches nor records (gateway/methods/knowledge/ask.cpp).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "retrieval/text/unicode.hpp"

namespace muniment::retrieval {

// A passage of the pack, best first. The views outlive the draft.
struct AnswerSource {
  std::string_view text;
  std::string_view title;
  std::string_view heading;
  std::string_view language;           // ISO 639-1 or "none"
  double score = 0;                    // fused score of the retrieval
  std::optional<std::size_t> newer{};  // index of a passage with a newer fact that may replace this one
};

struct SentenceCitation {
  std::size_t source = 0;  // index of the passage
  Span span;               // in the passage's text, in bytes
};

struct AnswerSentence {
  std::string text;
  std::vector<SentenceCitation> citations;
  bool supported = true;  // false: no passage that it cites carries it
};

struct Draft {
  std::vector<AnswerSentence> sentences;  // empty: the passages have no answer
  std::size_t words = 0;                  // words of the question that count
  double coverage = 0;  // 0…1: part of the question's words, by their weight, that its best sentence has
};

struct DraftRequest {
  std::string_view question;  // without markup
  std::span<const AnswerSource> sources;
  std::string prompt;  // the pack and the question, as a model reads them
};

class Drafter {
 public:
  virtual ~Drafter() = default;
  virtual std::string_view name() const = 0;  // with the version of its rules: "extractive/1"
  virtual Result<Draft> draft(const DraftRequest& request, Deadline deadline) const = 0;
};

}  // namespace muniment::retrieval
