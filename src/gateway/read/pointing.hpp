// Resolves pointers on behalf of a caller: limits what the caller sees, decides which run stops, and writes the
// outcome.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "evidence/resolver.hpp"
#include "evidence/stop_rule.hpp"
#include "gateway/call.hpp"

namespace muniment::gateway {

// Returns the view of the caller; pointers outside of it look as if they did not exist. Must not outlive `call`.
evidence::Sight sight_of(Call& call);

// Returns a view of the targets of all users, for what a run rests on already.
evidence::Sight sight_of_every_owner(Call& call);

// The use for which pointers are resolved.
struct Using {
  std::shared_ptr<store::Run> run{};  // run that uses them; nullptr: the run of each pointer
  bool critical = false;              // overrides the catalogue
  bool given = false;                 // a client wrote the pointers (Wanted::given)
  bool with_text = false;
  bool run_needed = false;  // a critical pointer needs a run that can stop
  evidence::Depth depth = evidence::Depth::span;
  std::optional<std::int64_t> as_of{};
  bool every_owner = false;  // targets of all users, because the run already rests on them
};

// Resolves pointers under the stop rule: a run stops only for a request of its owner. For other callers, and without a
// run, the findings are recorded in _log. Errors: invalid_argument for a critical pointer without a run if one is
// needed, unavailable.
Result<evidence::Outcome> resolve_pointers(Call& call, const std::vector<std::string>& pointers, const Using& use);

// Like `resolve_pointers`, but looks up the dependents of a pointer only if it is damaged. An intact pointer halts no
// run.
Result<evidence::Outcome> look_at_pointers(Call& call, const std::vector<std::string>& pointers, const Using& use);

// Call this before a method reads the targets of its record's references: no target is erased before the record is in
// the log. Errors: unavailable if an erasure lasts until the deadline.
Status begin_referring(Call& call);

// Resolves the pointers that a record will depend on; if the outcome has damage, `stop` makes the answer. Errors:
// invalid_argument for a pointer that does not parse or names no revision, not_found for erased, revoked or retracted
// content and for a target that the log never had, too_large for too many pointers, unavailable.
Result<evidence::Outcome> resolve_needed(Call& call, const std::vector<std::string>& pointers,
                                         const std::shared_ptr<store::Run>& run, bool with_text = false);

// Refuses unusable pointers like `resolve_needed`, but stops no run for damage, because these pointers are only
// mentioned.
Status check_usable(Call& call, const std::vector<std::string>& pointers);

// Inserts the events of the outcome before the request's own, and adjusts the event_index of the request's rows.
void log_outcome(const evidence::Outcome& outcome, store::AppendRequest& request);

// Returns an append of the outcome's events alone. `reply` makes the reply once the outcome is decided. If Postgres
// does not accept it, the halts are written to the journal and the run still stops.
PendingAppend append_outcome(const evidence::Outcome& outcome, std::function<Result<Reply>()> reply);

// Appends the events of an outcome without halts, and does not wait for the commit. For a method that makes its own
// answer.
void log_unwaited(Services& services, const evidence::Outcome& outcome);

// Returns the error of a method that damage prevents: run_halted if `run` stops for it or has stopped, otherwise
// corrupt.
Error damage_error(const evidence::Outcome& outcome, const evidence::Outcome::Item& damage,
                   const std::shared_ptr<store::Run>& run);

// Stops the run because critical pointers did not resolve, and returns the reason to the caller.
Result<Answer> stop(const evidence::Outcome& outcome, const std::shared_ptr<store::Run>& run);

// Call this after a read failed with `error` because the target of `pointer` is damaged: applies the stop rule and
// returns its answer. Returns nullopt if a second check found no damage; then read again.
Result<std::optional<Answer>> answer_damage(Call& call, const std::string& pointer, Using use, const Error& error);

// Writes "halted": the runs that the outcome stops.
void write_halted(json::Writer& out, const evidence::Outcome& outcome);

// Writes {"pointer":…, "ok":…, …}. `cursor` is the cursor of the page after its text; if it is empty, it is omitted.
void write_resolution(json::Writer& out, const evidence::Resolution& resolution, bool critical,
                      std::string_view cursor = {});

}  // namespace muniment::gateway
