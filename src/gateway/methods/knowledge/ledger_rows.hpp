// What the methods of the ledger share: rows as replies show them, and the hash of what evidence points at.
#pragma once

#include "base/json/json.hpp"
#include "evidence/resolver.hpp"
#include "gateway/call.hpp"
#include "store/append/rows.hpp"

namespace muniment::gateway::methods {

bool is_erased(const store::EvidenceRow& row);

void write_evidence(json::Writer& out, const store::EvidenceRow& row);

// SHA-256 of what the pointer names, whole or in part. Errors: invalid_argument for what is no bytes, too_large, and
// what reading a file answers.
Result<Hash> hash_of_evidence(Call& call, const evidence::Resolution& found);

}  // namespace muniment::gateway::methods
