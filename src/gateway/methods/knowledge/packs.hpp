// The context pack of a request and the record of it in a manifest. Shared by context.build and ask.
#pragma once

#include <memory>
#include <string>

#include "gateway/call.hpp"
#include "retrieval/query/pack_building.hpp"
#include "store/append/rows.hpp"

namespace muniment::gateway::methods {

// Returns the run that run_id names, which must accept events; without run_id, _log.
Result<std::shared_ptr<store::Run>> run_of_pack(Call& call);

// Runs every query and fills in all members except the pack.
Status find_candidates(Call& call, retrieval::PackBuilding& building);

// Returns the append of the manifest and of the event that names it, in one commit; without `finish`.
PendingAppend record_pack(Call& call, const std::shared_ptr<store::Run>& run, const store::ManifestRow& manifest,
                          std::string_view type, std::string body);

}  // namespace muniment::gateway::methods
