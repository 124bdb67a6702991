// Detects attempts to change a task's status without task.complete: a plan that marks an open task as done, an issue
// that was closed while its task is open, and an event.append of an event that only the gate writes. An item is
// finished unless its status is a known word for an unfinished one.
#pragma once

#include <vector>

#include "gateway/append/append_admission.hpp"
#include "gateway/call.hpp"
#include "store/tables/runs.hpp"

namespace muniment::gateway::methods {

// Returns whether one of the events says that a task is done: then a worker has to call `plan_violations`.
bool finishes_plan_items(const AdmittedAppend& admitted);

// Returns a violation.detected event for each finished item or closed issue that is the id of an open task of the run.
// Needs the call's reader if there is one.
Result<std::vector<events::NewEvent>> plan_violations(Call& call, const store::Run& run,
                                                      const AdmittedAppend& admitted);

// Records that a client tried to append an event of the gate, which was refused.
void note_direct_change(Call& call, const std::shared_ptr<store::Run>& run);

}  // namespace muniment::gateway::methods
