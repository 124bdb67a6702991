// What the methods that ask the corpora share: how their parameters are read, and what their caller may see.
#pragma once

#include "base/result.hpp"
#include "gateway/call.hpp"
#include "retrieval/query/retriever.hpp"

namespace muniment::gateway::methods {

// What holds for all queries of the request: mode, topK, group, profile, filters, asof, cursor, explain, exact.
// Errors: invalid_argument.
Result<retrieval::Question> common_question(Call& call);

Result<retrieval::Scope> scope_of(Call& call);

}  // namespace muniment::gateway::methods
