// Admission of a caller to a run, and the shared ways in which methods speak of runs and events.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "gateway/call.hpp"
#include "store/runs.hpp"

namespace muniment::gateway {

// The run, loaded into the directory if need be. Errors: not_found (also for a run of somebody
// else's, which looks the same), invalid_argument for a malformed id. On the loop thread a run that
// is not in memory answers nullptr.
Result<std::shared_ptr<store::Run>> find_run(Call& call, std::string_view run_id);

// run_halted, with the reason, or conflict for an ended one; for methods that do work before they
// append (the appender checks again while numbering).
Status check_open(const store::Run& run);

// An event of the daemon's making in a run; sealed. `body` is JSON text that fits the type's schema.
events::NewEvent make_event(Call& call, const store::Run& run, std::string_view type, std::string body,
                            std::string_view step_id = {});

// {"event_id":…, "seq":…, …}: the receipt as event.append answers it.
std::string receipt_json(const events::Receipt& receipt);

}  // namespace muniment::gateway
