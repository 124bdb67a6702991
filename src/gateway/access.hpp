// Checks a caller's access to a run, and holds the helpers that methods share for runs, events and logs. The functions
// run on a worker unless the call has no reader; then they use memory alone.
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

// Returns the run in the current log and loads it into the directory if necessary. On the loop thread, a run that is
// not in memory yields nullptr. Errors: not_found (also for a run of another user, so that its existence stays hidden),
// conflict for a run in a log that this one continues, invalid_argument for a malformed id.
Result<std::shared_ptr<store::Run>> find_run(Call& call, std::string_view run_id);

// Loads a run without checking its owner, for the daemon's own purposes, such as noting a child in its parent. Returns
// nullptr if the run does not exist.
Result<std::shared_ptr<store::Run>> load_run(Call& call, std::string_view run_id);

// Returns the run of that name in the newest earlier log that has it, or nullptr. Such a run accepts no more events.
// Needs the call's reader.
Result<std::shared_ptr<store::Run>> find_earlier_run(Call& call, std::string_view run_id);

// A run to read, with the reader of its log.
struct ReadRun {
  std::shared_ptr<store::Run> run;
  store::Reader* reader = nullptr;
};

// Like `find_run`, but also searches the logs that this one continues. If several logs have the name, the newest is
// used. The parameter log_no selects one log. Sets Call::read_log, so that the reply names the log if it is not the
// current one. Needs the call's reader.
Result<ReadRun> find_run_to_read(Call& call, std::string_view run_id);
// Returns whether the caller may see the run of that log. Does not set Call::read_log.
Result<bool> sees_run(Call& call, std::string_view run_id, std::int16_t log_no);

// Sets Call::read_log to this reader's log unless that is the current log.
void note_log(Call& call, const store::Reader& reader);

// Returns the reader of the log that the parameter log_no names; without it, the reader of the current log. Errors:
// not_found.
Result<store::Reader*> reader_named(Call& call);
// Returns the readers of the current log and of the earlier ones, newest first.
std::vector<store::Reader*> readers_of_all(Call& call);
// Looks up a row by its id in the newest log that has it, and returns its reader with it. If no log has the row, the
// result is nullopt with the reader of the current log.
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

// Returns the closed log with this number, or nullptr for the current log.
store::EarlierLog* earlier_log(Services& services, std::int16_t log_no);
// Returns the tree of a closed log and builds it if necessary. Errors: those of ClosedTree::proven.
Result<const audit::ClosedTree::Proven*> closed_tree(Call& call, std::int16_t log_no);

// Returns the event at this position of the log that the parameter log_no names; nullopt if it does not exist or the
// caller may not see it. Needs the call's reader.
Result<std::optional<events::Event>> find_event(Call& call, std::int64_t seq);

// Returns a conflict for a name of a run or a corpus that belongs to another user. The message reveals nothing else.
Error taken(std::string_view what, std::string_view name);

// Returns denied unless the caller is root or the daemon's own user. `what` is the verb of the message: "erase".
Status check_admin(const Call& call, std::string_view what);

bool may_see(const Caller& caller, const store::RunView& run);

// Checks that the run accepts events, for methods that work before they append. The appender checks again while
// numbering. Errors: run_halted with the reason, conflict for an ended run, denied for the daemon's own run _log.
Status check_open(const store::Run& run);

// Makes a sealed event that the daemon itself writes into a run. `body` is JSON text that fits the type's schema. In an
// imported run, _meta.occurred_at sets the time of the event.
events::NewEvent make_event(Call& call, const store::Run& run, std::string_view type, std::string body,
                            std::string_view step_id = {});

// Derives the event id from the caller, the method and _meta.idempotency_key, which must not be empty; a repeated
// request gets the same id. Such an event is not `event_id_is_ours`; its method answers a repetition with
// first_receipts.hpp.
Uuid idempotent_id(const Caller& caller, std::string_view method, std::string_view idempotency_key,
                   std::size_t index = 0);
// Like `idempotent_id`, but includes the run: the same key in a different run gives a different id.
Uuid idempotent_id_in(const store::Run& run, const Caller& caller, std::string_view method,
                      std::string_view idempotency_key, std::size_t index = 0);

// Returns the parameter `asof`, a seq or a time, as a seq of the reader's log; nullopt if it is absent. Errors:
// invalid_argument, also for a position in the future, because its answer would change; unavailable for a time that is
// in the future only while a commit is in flight.
Result<std::optional<std::int64_t>> asof_seq(const Call& call, store::Reader& reader);

// Returns the origin of an event of this type that the daemon writes: `observed` for the daemon's own observations and
// actions, `reported` for data that it passes on for a client. The start and the end of a command are observations only
// if the daemon's executor started it.
events::Origin origin_of_daemon_event(std::string_view type, const Caller& caller);

// Returns the receipt as in the reply of event.append: {"event_id":…, "seq":…, …}.
std::string receipt_json(const events::Receipt& receipt);

}  // namespace muniment::gateway
