// The extractive drafter: cites the sentences of the passages that have most of the question's words. It needs no
// model, and its sentences are verbatim spans of the passages.
#pragma once

#include "retrieval/answer/drafter.hpp"

namespace muniment::retrieval {

class ExtractiveDrafter final : public Drafter {
 public:
  std::string_view name() const override { return "extractive/1"; }
  // The sentences are in the order of the passages and of their text. No sentence has a word of the question: no draft.
  Result<Draft> draft(const DraftRequest& request, Deadline deadline) const override;
};

}  // namespace muniment::retrieval
