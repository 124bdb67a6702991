// Appends the events that the daemon writes on its own behalf to the run _log.
#pragma once

#include <string>
#include <string_view>

#include "gateway/services.hpp"

namespace muniment::gateway {

// Queues an event and does not wait for its commit, because a failure to record it must not fail a request. If
// `patient`, the event may wait a few milliseconds to share a commit.
void append_own(Services& services, std::string_view type, std::string body, bool patient = false);

// Appends the counted refusals of the minutes that are over, or of all minutes.
void append_refusals(Services& services, bool all);

}  // namespace muniment::gateway
