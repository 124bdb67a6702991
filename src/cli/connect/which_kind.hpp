// Detects ambiguous arguments: a run id may be 3, like the seq of an event, or equal to the UUID of an artifact.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "client/connect/session.hpp"

namespace muniment::cli {

// Returns whether a run with this id exists that this user may read.
Result<bool> is_run(Session& session, const std::string& id);

// Checks that the digits are not also the id of a run. Errors: conflict; the message lists `ways` ("--seq 3 or --run
// 3").
Status check_is_only_seq(Session& session, const std::string& digits, std::string_view ways);

}  // namespace muniment::cli
