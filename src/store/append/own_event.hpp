// Creates the events that the daemon appends on its own initiative.
#pragma once

#include <string>
#include <string_view>

#include "store/append/appender.hpp"

namespace muniment::store {

// Returns an observed event with a new id, sealed.
events::NewEvent own_event(std::string_view type, std::string body, Time now);
// Returns a request of the daemon with one such event for the run _log.
AppendRequest own_request(const RunDirectory& runs, std::string_view type, std::string body, Time now);

}  // namespace muniment::store
