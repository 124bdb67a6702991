// Records every use of stored content: in the open run that uses it, otherwise in _log.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "evidence/stop_rule.hpp"
#include "gateway/call.hpp"

namespace muniment::gateway {

// The run, step and branch that a request names as its purpose.
struct Use {
  std::shared_ptr<store::Run> run{};  // nullptr: the request names no run
  std::string step_id{};
  std::string branch{};
};

// Reads run_id, step_id and branch. Errors: not_found, also for a run of another user.
Result<Use> use_of(Call& call);

// Answers with the caller's use recorded. In an open run the event is committed before the reply, which carries its
// run_seq; otherwise the event goes to _log with the run's id and the reply does not wait. `members` is the body
// without the members that `use` supplies. The events of `outcome` are appended with it.
Answer leave_trace(Call& call, const Use& use, std::string_view type, std::string_view members, Reply reply,
                   const evidence::Outcome& outcome = {});

// Returns the members of pointer.resolved, pointer.validated and pointer.rendered: the pointers and their results. The
// body names as many pointers as fit and counts all of them. Hashes are omitted, because a reader could guess erased
// content from them.
std::string looked_at(const evidence::Outcome& outcome, std::optional<std::int64_t> as_of, std::int64_t duration_us);

// Records artifact.read for one piece; `members` as for leave_trace. The pieces of one artifact that a connection reads
// for the same use form one reading and one event, which is committed before the first piece is returned; the replies
// to the other pieces carry its run_seq too.
Answer leave_trace_of_piece(Call& call, const Use& use, const std::string& artifact_id, std::int64_t offset,
                            std::string_view members, Reply reply);

}  // namespace muniment::gateway
