// Reads the parameters of the methods that query corpora.
#pragma once

#include "base/result.hpp"
#include "gateway/call.hpp"
#include "retrieval/query/retriever.hpp"

namespace muniment::gateway::methods {

// Reads the parameters that apply to all queries of the request: mode, topK, group, profile, filters, asof, cursor,
// explain, exact, and the corpora that the caller may see. Errors: invalid_argument.
Result<retrieval::Question> common_question(Call& call);

Result<retrieval::Scope> scope_of(Call& call);

}  // namespace muniment::gateway::methods
