// Terms of evidence: its expiry, its dependencies and its artifacts. They are members of its event and have no column.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json/json.hpp"
#include "base/result.hpp"
#include "gateway/call.hpp"
#include "store/append/rows.hpp"
#include "store/read/reader.hpp"

namespace muniment::gateway::methods {

// Returns the terms in the request as further members of the event's body, JSON text with a leading comma. Errors:
// not_found for a dependency that does not exist, was erased or is not visible to the caller; invalid_argument for one
// that is given twice or that is `own`, the evidence itself.
Result<std::string> terms_of_request(Call& call, const Uuid& own);

// Returns whether the request has the same terms as the event of the recorded use.
Result<bool> has_same_terms(Call& call, std::int64_t seq);

// Writes the members expires_at, depends_on and artifacts of a row, from the terms of several.
void write_terms(json::Writer& out, const store::EvidenceRow& row, const std::vector<store::EvidenceTerms>& terms);

// Returns the expiry of evidence recorded at `recorded_at`.
Time expiry_of(Time recorded_at, std::int64_t expires_in_seconds);

}  // namespace muniment::gateway::methods
