// Answers repeated requests with their first receipts, found by event id (docs/architecture.md, One append).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "events/event.hpp"
#include "gateway/access.hpp"
#include "gateway/call.hpp"
#include "store/tables/runs.hpp"

namespace muniment::gateway {

// Looks up the ids of a request's events in the run. Returns one entry per event, without bodies. All entries come
// from one snapshot, so a concurrent duplicate of the request is visible completely or not at all.
using KnownEvents = std::vector<std::optional<events::Event>>;
Result<KnownEvents> known_events(Call& call, const store::Run& run, std::span<const events::NewEvent> events);

// Returns the first receipts of `events` if the run has all of them with the same type, schema version, step and body;
// nullopt if it has none. Runs on a worker. Errors: conflict that names the first event that differs, or if only some
// of the events are in the log.
using FirstReceipts = std::optional<std::vector<events::Receipt>>;
Result<FirstReceipts> first_receipts(Call& call, const store::Run& run, std::span<const events::NewEvent> events);
Result<FirstReceipts> first_receipts(Call& call, const store::Run& run, std::span<const events::NewEvent> events,
                                     const KnownEvents& known);

// Finds the event with that id in the run _log of the current log, or of the newest earlier log that has it: the
// request may have been sent before that log was restored. Runs on a worker.
Result<FoundRow<events::Event>> find_in_log_runs(Call& call, const Uuid& event_id);

// Returns a conflict: the idempotency key was used for a different request, or for one that was erased and cannot be
// compared. `known` is the logged event.
Error used_key(const events::Event& known);
// Like used_key above, for content that is stored outside the event and may have been erased between two reads.
Error used_key(const events::Event& known, bool erased);

}  // namespace muniment::gateway
