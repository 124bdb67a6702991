// What the methods on corpora share: who sees one, and how a document is read and waited for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "gateway/call.hpp"
#include "retrieval/text/document_text.hpp"
#include "store/corpus_rows.hpp"

namespace muniment::gateway {

bool may_see_corpus(const Caller& caller, std::string_view owner);

// The corpus, if the caller may see it. Errors: not_found, also for somebody else's.
Result<store::CorpusRow> find_corpus(Call& call, std::string_view corpus);

// Reads a document; what needs a parser for foreign formats is read in a process of its own.
Result<retrieval::DocumentText> read_text(Call& call, std::string_view bytes, std::string_view name, std::string_view mime_type);

std::string mime_type_of(retrieval::Format format);

// {"corpus":…, "document":…, "revision":…, …}
void write_document(json::Writer& out, const store::DocumentRow& row);

}  // namespace muniment::gateway
