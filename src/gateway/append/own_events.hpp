// What the daemon writes of its own accord, into the run _log.
#pragma once

#include <string>
#include <string_view>

#include "gateway/services.hpp"

namespace muniment::gateway {

// Not waited for: the daemon's own record is not worth failing for. `patient`: committed with others that come within
// milliseconds.
void append_own(Services& services, std::string_view type, std::string body, bool patient = false);

// The refusals of the minutes that are over, or all of them.
void append_refusals(Services& services, bool all);

}  // namespace muniment::gateway
