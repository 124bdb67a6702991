// What the methods on corpora share: who sees one, and how a document is read and waited for.
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

// The corpus, if the caller may see it. Errors: not_found, also for somebody else's.
Result<store::CorpusRow> find_corpus(Call& call, std::string_view corpus);

// For an append that changes documents: how far what is read of them from now on goes at least, with all that was
// acknowledged (AppendRequest::names_known_upto). Errors: deadline_exceeded.
Result<std::int64_t> documents_known_upto(Call& call);
// Its names. What is about one document is about none of the others; a corpus is named by whoever makes it.
std::string name_of_document(std::string_view corpus, std::string_view document);
std::string name_of_corpus(std::string_view corpus);
std::string name_of_source(std::string_view source);
// To be called when it is refused: where others changed the documents meanwhile, it is made again from tables that have
// it.
void note_moved_on(Services& services, const Error& error);

// Reads a document; what needs a parser for foreign formats is read in a process of its own.
Result<retrieval::DocumentText> read_text(Call& call, std::string_view bytes, std::string_view name,
                                          std::string_view mime_type);

std::string mime_type_of(retrieval::Format format);

// {"corpus":…, "document":…, "revision":…, …}
// `carried`: it was brought along from a closed log, and was first recorded then, as far as that is known; nullptr:
// nothing is said of that.
void write_document(json::Writer& out, const store::DocumentRow& row, const std::optional<Time>* carried = nullptr);

}  // namespace muniment::gateway
