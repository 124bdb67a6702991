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

// How pointers are used.
struct Using {
  std::shared_ptr<store::Run> run{};  // that they are used for; nullptr: each pointer's own
  bool critical = false;              // whatever the catalogue says
  bool with_text = false;
  bool run_needed = false;  // what is critical must have a run that can stop
  evidence::Depth depth = evidence::Depth::span;
  std::optional<std::int64_t> as_of{};
};

// Resolves under the stop rule: a run stops for its owner alone. For anybody else, and where there is no run, what is
// found is noted in _log. Errors: invalid_argument for a critical pointer without a run where one is needed,
// unavailable.
Result<evidence::Outcome> resolve_pointers(Call& call, const std::vector<std::string>& pointers, const Using& use);

// The same for a look that halts nothing as long as all is well: asks what depends on a pointer only where it is
// damaged.
Result<evidence::Outcome> look_at_pointers(Call& call, const std::vector<std::string>& pointers, const Using& use);

// Before a method that records something reads what that will refer to: none of it is erased before the record is in
// the log. Errors: unavailable, where something is being erased until the deadline.
Status begin_referring(Call& call);

// Resolves what something that is about to be recorded will depend on; where the outcome has damage, `stop` answers.
// Errors: invalid_argument for what does not parse or names no revision, not_found for what was erased, revoked or
// retracted, too_large for too many, unavailable.
Result<evidence::Outcome> resolve_needed(Call& call, const std::vector<std::string>& pointers,
                                         const std::shared_ptr<store::Run>& run, bool with_text = false);

// Refuses pointers that something merely names, as `resolve_needed` does, but stops no run: damage is none of its
// business.
Status check_usable(Call& call, const std::vector<std::string>& pointers);

// Adds what the outcome has to log in front of the request's own events. The caller's own rows keep
// their place: their event_index moves along.
void log_outcome(const evidence::Outcome& outcome, store::AppendRequest& request);

// The append of an outcome that stops a run or has something to log, and nothing else. `reply` says
// what the caller gets once that is settled. When Postgres cannot take it the halts go to the
// journal, and the run is stopped all the same.
PendingAppend append_outcome(const evidence::Outcome& outcome, std::function<Result<Reply>()> reply);

// Appends what an outcome without halts has to log, for a method whose own answer is something else.
void log_unwaited(Services& services, const evidence::Outcome& outcome);

// What a method answers that could not go on: run_halted where `run` stops for it or has stopped, otherwise corrupt.
Error damage_error(const evidence::Outcome& outcome, const evidence::Outcome::Item& damage,
                   const std::shared_ptr<store::Run>& run);

// The pointers that something critical needs did not resolve: the run stops, and the caller is told why.
Result<Answer> stop(const evidence::Outcome& outcome, const std::shared_ptr<store::Run>& run);

// A read met damage, which `error` says, in what `pointer` names: the stop rule decides what follows, and the answer
// says it. nullopt: a second look found nothing wrong; read again.
Result<std::optional<Answer>> answer_damage(Call& call, const std::string& pointer, Using use, const Error& error);

// "halted": the runs that the outcome stops.
void write_halted(json::Writer& out, const evidence::Outcome& outcome);

// {"pointer":…, "ok":…, …}. `cursor`: of the page after its text; empty: there is none.
void write_resolution(json::Writer& out, const evidence::Resolution& resolution, bool critical,
                      std::string_view cursor = {});

}  // namespace muniment::gateway
