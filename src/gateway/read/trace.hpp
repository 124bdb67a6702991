// Every use leaves its trace where it belongs: in the run that it is for, or, where there is none that is open, in
// _log.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "evidence/stop_rule.hpp"
#include "gateway/call.hpp"

namespace muniment::gateway {

// What a request says that it is for.
struct Use {
  std::shared_ptr<store::Run> run{};  // nullptr: none is named
  std::string step_id{};
  std::string branch{};
};

// run_id, step_id and branch. Errors: not_found, also for a run of somebody else's.
Result<Use> use_of(Call& call);

// The event of a use, by the caller. In an open run it stands before the reply, which then carries its run_seq;
// otherwise it is in _log, by the way, with the run's id. `members` is the body without what `use` says. What `outcome`
// has to log comes with it.
Answer leave_trace(Call& call, const Use& use, std::string_view type, std::string_view members, Reply reply,
                   const evidence::Outcome& outcome = {});

// The members of pointer.resolved, pointer.validated and pointer.rendered: what was looked at, and what became of it.
// Of many pointers the first are named, as many as a body has room for; all are counted. No hashes: what is erased
// could be guessed by them.
std::string looked_at(const evidence::Outcome& outcome, std::optional<std::int64_t> as_of, std::int64_t duration_us);

// artifact.read, of one piece; `members` as of leave_trace. Pieces of one artifact that a connection reads for the same
// use are one reading, and one event: it stands before the first of them is handed out, and the replies to the others
// carry its run_seq, too.
Answer leave_trace_of_piece(Call& call, const Use& use, const std::string& artifact_id, std::int64_t offset,
                            std::string_view members, Reply reply);

}  // namespace muniment::gateway
