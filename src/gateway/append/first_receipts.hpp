// Answers repeated requests: looks up the receipts of event ids that a client sent before (docs/architecture.md, One
// append).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "events/event.hpp"
#include "gateway/access.hpp"
#include "gateway/call.hpp"
#include "store/tables/runs.hpp"

namespace muniment::gateway {

// What the run has under the ids of the events of one request, one each, without their bodies. All of it is of one
// moment: a twin of the request that is recorded meanwhile is there whole, or not at all.
using KnownEvents = std::vector<std::optional<events::Event>>;
Result<KnownEvents> known_events(Call& call, const store::Run& run, std::span<const events::NewEvent> events);

// The first receipts of `events` when the run has all of them, with the same type, schema version,
// step and body; nullopt when it has none. On a worker. Errors: conflict, saying which event
// differs, or when some are in the log and some are not.
using FirstReceipts = std::optional<std::vector<events::Receipt>>;
Result<FirstReceipts> first_receipts(Call& call, const store::Run& run, std::span<const events::NewEvent> events);
Result<FirstReceipts> first_receipts(Call& call, const store::Run& run, std::span<const events::NewEvent> events,
                                     const KnownEvents& known);

// The event of that id in the run _log: of the present log, or of the newest one before it that has it, to which the
// request may have been sent before that was restored. On a worker.
Result<FoundRow<events::Event>> find_in_log_runs(Call& call, const Uuid& event_id);

// conflict: the request's idempotency key came with another one before, or with one that was erased since and cannot be
// compared. `known`: what the log has under it.
Error used_key(const events::Event& known);
// The same, where what it said is elsewhere, too, and may have gone between two reads.
Error used_key(const events::Event& known, bool erased);

}  // namespace muniment::gateway
