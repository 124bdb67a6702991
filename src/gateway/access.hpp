// Admission of a caller to a run, and the shared ways in which methods speak of runs and events.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "gateway/call.hpp"
#include "store/runs.hpp"

namespace muniment::gateway {

// The run, loaded into the directory if need be. Errors: not_found (also for a run of somebody
// else's, which looks the same), invalid_argument for a malformed id. On the loop thread a run that
// is not in memory answers nullptr.
Result<std::shared_ptr<store::Run>> find_run(Call& call, std::string_view run_id);

// The same for the daemon's own purposes, whoever the run belongs to: where a child has to be noted
// in its parent. nullptr too where there is no such run.
Result<std::shared_ptr<store::Run>> load_run(Call& call, std::string_view run_id);

// denied, unless it is root or the daemon's own user. `what` they may not: "erase".
Status check_admin(const Call& call, std::string_view what);

bool may_see(const Caller& caller, const store::RunView& run);

// run_halted, with the reason, conflict for an ended one, denied for the daemon's own run _log; for
// methods that do work before they append (the appender checks again while numbering).
Status check_open(const store::Run& run);

// An event of the daemon's making in a run; sealed. `body` is JSON text that fits the type's schema.
events::NewEvent make_event(Call& call, const store::Run& run, std::string_view type, std::string body,
                            std::string_view step_id = {});

// The event id that follows from the caller, the method and _meta.idempotency_key, which must be
// there: the same request sent again carries the same one. Such an event is not `event_id_is_ours`;
// its method answers a repetition by first_receipts.hpp.
Uuid idempotent_id(const Caller& caller, std::string_view method, std::string_view idempotency_key,
                   std::size_t index = 0);

// The parameter `asof`, a seq or a time, as a seq; nullopt where there is none. Needs the call's reader.
Result<std::optional<std::int64_t>> asof_seq(Call& call);

// Who vouches for an event of this type that the daemon writes: itself, for what it saw or did; the
// client, for what the daemon only passes on.
events::Origin origin_of_daemon_event(std::string_view type);

// {"event_id":…, "seq":…, …}: the receipt as event.append answers it.
std::string receipt_json(const events::Receipt& receipt);

}  // namespace muniment::gateway
