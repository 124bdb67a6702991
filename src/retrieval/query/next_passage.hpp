// Rules for the passage after a question: in a conversation, the answer is the next turn, and may share no word with
// the query.
#pragma once

#include <string_view>

#include "retrieval/facts.hpp"
#include "store/read/corpus_rows.hpp"

namespace muniment::retrieval {

// Returns whether a text ends with a question mark; quotation marks, brackets and emphasis after it do not count, so
// that a chat turn in JSON may be a question.
bool ends_with_question(std::string_view text);

// Returns whether `next` continues `first`: the next chunk of one revision, or the first chunk of the document whose
// name ends with the next number (turn-9, turn-10; the next event of a run).
bool continues(const store::ChunkInDocument& first, const store::ChunkInDocument& next);

// Returns whether a document with these labels and this time passes the filter. Ignores the validity.
bool passes(const Filter& filter, const Facts& facts);

}  // namespace muniment::retrieval
