// Helpers that the methods on corpora share: access to a corpus, and reading a document.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"
#include "gateway/call.hpp"
#include "retrieval/text/document_text.hpp"
#include "store/read/corpus_rows.hpp"

namespace muniment::gateway {

bool may_see_corpus(const Caller& caller, std::string_view owner);

// Returns the corpus if the caller may see it. Errors: not_found, also for a corpus of another user.
Result<store::CorpusRow> find_corpus(Call& call, std::string_view corpus);

// Returns a seq up to which the documents that the call reads next are complete (AppendRequest::names_known_upto), for
// an append that changes documents. It covers every acknowledged append. Errors: deadline_exceeded.
Result<std::int64_t> documents_known_upto(Call& call);
// Return names for the append thread. A change of one document conflicts with no other document. The name of a corpus
// belongs to its creator.
std::string name_of_document(std::string_view corpus, std::string_view document);
std::string name_of_corpus(std::string_view corpus);
std::string name_of_source(std::string_view source);
// Call this when the append is refused. If concurrent requests changed the documents, the retry reads tables that
// include their changes.
void note_moved_on(Services& services, const Error& error);

// Extracts a document's text. Formats that need a third-party parser are read in a separate process.
Result<retrieval::DocumentText> read_text(Call& call, std::string_view bytes, std::string_view name,
                                          std::string_view mime_type);

// Writes {"corpus":…, "document":…, "revision":…, …}. `carried` is set if the document was carried over from a closed
// log; it holds the time of its first record, if known. If it is nullptr, that member is omitted.
void write_document(json::Writer& out, const store::DocumentRow& row, const std::optional<Time>* carried = nullptr,
                    const std::string* summary = nullptr);

}  // namespace muniment::gateway
