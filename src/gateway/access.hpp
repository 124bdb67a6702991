// Admission of a caller to a run, and the shared ways in which methods speak of runs and events.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "audit/closed_tree.hpp"
#include "gateway/call.hpp"
#include "store/logs/earlier_logs.hpp"
#include "store/tables/runs.hpp"

namespace muniment::gateway {

// The run in the log that is written, loaded into the directory if need be. Errors: not_found (also for a run of
// somebody else's, which looks the same), conflict for one in a log that this one goes on from, invalid_argument for a
// malformed id. On the loop thread a run that is not in memory answers nullptr.
Result<std::shared_ptr<store::Run>> find_run(Call& call, std::string_view run_id);

// The same for the daemon's own purposes, whoever the run belongs to: where a child has to be noted
// in its parent. nullptr too where there is no such run.
Result<std::shared_ptr<store::Run>> load_run(Call& call, std::string_view run_id);

// The run of that name in the newest log before the present one that has it; nullptr: none has. It takes nothing more.
// Needs the call's reader.
Result<std::shared_ptr<store::Run>> find_earlier_run(Call& call, std::string_view run_id);

// A run that is read, and what reads its log.
struct ReadRun {
  std::shared_ptr<store::Run> run;
  store::Reader* reader = nullptr;
};

// As `find_run`, also of the logs that this one goes on from; where several have the name, the newest. The parameter
// log_no, where there is one, says in which. The reply will say which log it was, where it is not the present one
// (Call::read_log). Needs the call's reader.
Result<ReadRun> find_run_to_read(Call& call, std::string_view run_id);
// May the caller see the run of that log? Says nothing in the reply.
Result<bool> sees_run(Call& call, std::string_view run_id, std::int16_t log_no);

// The reply says that it comes from this reader's log, where that is not the present one.
void note_log(Call& call, const store::Reader& reader);

// What reads the log that the parameter log_no names; without it the present one. Errors: not_found.
Result<store::Reader*> reader_named(Call& call);
// What reads the present log, then those before it, in order.
std::vector<store::Reader*> readers_of_all(Call& call);
// A row by its id, from the newest log that has it, and what reads it there. nullopt, of the present one: there is
// none.
template <typename Row>
struct FoundRow {
  std::optional<Row> row;
  store::Reader* reader = nullptr;
};
template <typename Row>
Result<FoundRow<Row>> find_in_all(Call& call, const std::function<Result<std::optional<Row>>(store::Reader&)>& read) {
  for (store::Reader* const reader : readers_of_all(call)) {
    ASSIGN_OR_RETURN(std::optional<Row> row, read(*reader));
    if (row) return FoundRow<Row>{std::move(row), reader};
  }
  return FoundRow<Row>{std::nullopt, call.reader};
}

// The log that a reader reads, where it is not the present one; nullptr: it is.
store::EarlierLog* earlier_log(Services& services, std::int16_t log_no);
// Its tree, made if need be. Errors: those of ClosedTree::proven.
Result<const audit::ClosedTree::Proven*> closed_tree(Call& call, std::int16_t log_no);

// The event at that place of the log that the parameter log_no names, if there is one that the caller may see. Needs
// the call's reader.
Result<std::optional<events::Event>> find_event(Call& call, std::int64_t seq);

// conflict: the name of a run or a corpus, which the caller wanted to give, is somebody else's. It says no more than
// that.
Error taken(std::string_view what, std::string_view name);

// denied, unless it is root or the daemon's own user. `what` they may not: "erase".
Status check_admin(const Call& call, std::string_view what);

bool may_see(const Caller& caller, const store::RunView& run);

// run_halted, with the reason, conflict for an ended one, denied for the daemon's own run _log; for
// methods that do work before they append (the appender checks again while numbering).
Status check_open(const store::Run& run);

// An event of the daemon's making in a run; sealed. `body` is JSON text that fits the type's schema. In an imported run
// it occurred when _meta.occurred_at says.
events::NewEvent make_event(Call& call, const store::Run& run, std::string_view type, std::string body,
                            std::string_view step_id = {});

// The event id that follows from the caller, the method and _meta.idempotency_key, which must be
// there: the same request sent again carries the same one. Such an event is not `event_id_is_ours`;
// its method answers a repetition by first_receipts.hpp.
Uuid idempotent_id(const Caller& caller, std::string_view method, std::string_view idempotency_key,
                   std::size_t index = 0);
// The same for what is named across runs: another run's has another id.
Uuid idempotent_id_in(const store::Run& run, const Caller& caller, std::string_view method,
                      std::string_view idempotency_key, std::size_t index = 0);

// The parameter `asof`, a seq or a time, as a seq of the reader's log; nullopt where there is none. Errors:
// invalid_argument, also for what is yet to come: the answer would be another one each time; unavailable, for a time of
// which that is so for as long as a commit is in flight.
Result<std::optional<std::int64_t>> asof_seq(const Call& call, store::Reader& reader);

// Who vouches for an event of this type that the daemon writes: itself, for what it saw or did; the
// client, for what the daemon only passes on.
events::Origin origin_of_daemon_event(std::string_view type);

// {"event_id":…, "seq":…, …}: the receipt as event.append answers it.
std::string receipt_json(const events::Receipt& receipt);

}  // namespace muniment::gateway
