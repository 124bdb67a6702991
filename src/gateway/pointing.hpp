// Pointers on behalf of a caller: what he may see, which run stops, and how it is said.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "evidence/resolver.hpp"
#include "evidence/stop_rule.hpp"
#include "gateway/call.hpp"

namespace muniment::gateway {

// What the caller may see; the rest looks as if it were not there. For as long as `call`.
evidence::Sight sight_of(Call& call);

// Resolves under the stop rule. `run` is the one that stops; nullptr: each pointer's own, where the
// caller may see it. Errors: invalid_argument for a critical pointer without a run, unavailable.
Result<evidence::Outcome> resolve_pointers(Call& call, const std::vector<std::string>& pointers,
                                           const std::shared_ptr<store::Run>& run, bool critical, bool with_text,
                                           std::optional<std::int64_t> as_of = {});

// Adds what the outcome has to log in front of the request's own events. The caller's own rows keep
// their place: their event_index moves along.
void log_outcome(const evidence::Outcome& outcome, store::AppendRequest& request);

// The append of an outcome that stops a run or has something to log, and nothing else. `reply` says
// what the caller gets once that is settled. When Postgres cannot take it the halts go to the
// journal, and the run is stopped all the same.
PendingAppend append_outcome(const evidence::Outcome& outcome, std::function<Result<Reply>()> reply);

// The error for a method that could not go on because of damage: run_halted, with the pointer.
Error damage_error(const evidence::Outcome::Item& damage, std::string_view run_id);

// {"pointer":…, "ok":…, …}
void write_resolution(json::Writer& out, const evidence::Resolution& resolution, bool critical);

}  // namespace muniment::gateway
