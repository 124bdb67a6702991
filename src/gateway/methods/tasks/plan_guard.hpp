// Finds attempts to change a task's status beside task.complete: a plan that calls an open task done, and an
// event.append of an event that only the gate writes.
#pragma once

#include <vector>

#include "gateway/append/append_admission.hpp"
#include "gateway/call.hpp"
#include "store/tables/runs.hpp"

namespace muniment::gateway::methods {

// Whether one of the events is a plan with a finished item: then `plan_violations` has to be asked, on a worker.
bool finishes_plan_items(const AdmittedAppend& admitted);

// A violation.detected event for each finished item that is the id of an open task of the run; none without a finished
// item. Needs the call's reader otherwise.
Result<std::vector<events::NewEvent>> plan_violations(Call& call, const store::Run& run,
                                                      const AdmittedAppend& admitted);

// Records that a client tried to append an event of the gate, which was refused.
void note_direct_change(Call& call, const std::shared_ptr<store::Run>& run);

}  // namespace muniment::gateway::methods
