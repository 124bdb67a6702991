#include "verify/tables/erased_states.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

namespace muniment::verify {
namespace {

constexpr std::int64_t not_ended = std::numeric_limits<std::int64_t>::max();

// Upper bound of the states that the erasures up to one snapshot removed: from `from` on, and below the snapshot stored
// at their end.
struct Taken {
  std::int64_t from = not_ended;
  std::int64_t below = not_ended;
};

struct ErasedState {
  std::int64_t run_no = 0, seq = 0, event_seq = 0;
  std::string artifact_id;
};

Result<std::vector<ErasedState>> read_states(Connection& connection, const Log& log) {
  RETURN_IF_ERROR(connection.start_copy(fmt::format(
      "SELECT run_no, seq, event_seq, artifact_id FROM snapshot WHERE log_no = {} AND run_no > {} AND salt IS NULL",
      log.log_no, log.run_no_known)));
  std::vector<ErasedState> states;
  Row row;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, connection.next(row));
    if (!more) return states;
    states.push_back({row.integer(0), row.integer(1), row.integer(2), row.uuid_text(3)});
  }
}

// Returns the bounds by run. It reads each run backwards, so that the snapshot that ends an erasure is known before its
// announcements are read.
Result<std::map<std::int64_t, std::vector<Taken>>> read_taken(Connection& connection, const Log& log) {
  RETURN_IF_ERROR(connection.start_copy(fmt::format(
      "SELECT run_no, (type = 'snapshot.taken')::int, (body->>'seq')::bigint FROM event WHERE log_no = {0} AND run_no > 0 AND body IS NOT NULL AND "
      "(type = 'event.redacted' OR (type = 'snapshot.taken' AND body->>'reason' = 'erasure')) AND "
      "run_no IN (SELECT run_no FROM snapshot WHERE log_no = {0} AND salt IS NULL) ORDER BY run_no, run_seq DESC",
      log.log_no)));
  std::map<std::int64_t, std::vector<Taken>> taken;
  Row row;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, connection.next(row));
    if (!more) return taken;
    std::vector<Taken>& of_run = taken[row.integer(0)];
    if (of_run.empty()) of_run.emplace_back();
    if (row.integer(1) == 1)
      of_run.push_back({not_ended, row.integer(2)});
    else
      of_run.back().from = std::min(of_run.back().from, row.integer(2));
  }
}

}  // namespace

Status check_erased_states(Connection& connection, const Log& log, const std::set<std::string>& redacted,
                           Findings& findings) {
  ASSIGN_OR_RETURN(const std::vector<ErasedState> states, read_states(connection, log));
  if (states.empty()) return success();
  ASSIGN_OR_RETURN(const auto taken, read_taken(connection, log));
  for (const ErasedState& state : states) {
    if (redacted.contains(state.artifact_id)) continue;
    const auto of_run = taken.find(state.run_no);
    const bool explained = of_run != taken.end() && std::ranges::any_of(of_run->second, [&](const Taken& one) {
                             return one.from <= state.seq && state.seq < one.below;
                           });
    if (explained) continue;
    findings.add({Check::snapshot_hash, state.event_seq, log.run_id(state.run_no),
                  "a state: no erasure of this run removed that of seq " + std::to_string(state.seq),
                  "an erased state"});
  }
  return success();
}

}  // namespace muniment::verify
