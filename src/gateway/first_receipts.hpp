// Repeated requests: what the log says of ids that a client sent before (event-log.md, Idempotency
// before numbering).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "events/event.hpp"
#include "gateway/call.hpp"
#include "store/runs.hpp"

namespace muniment::gateway {

// The first receipts of `events` when the run has all of them, with the same type, schema version,
// step and body; nullopt when it has none. On a worker. Errors: conflict, saying which event
// differs, or when some are in the log and some are not.
Result<std::optional<std::vector<events::Receipt>>> first_receipts(
    Call& call, const store::Run& run, std::span<const events::NewEvent> events);

}  // namespace muniment::gateway
