// One word that may name things of several kinds: a run may be called 3, as the event with the seq 3 is, or have the
// UUID of an artifact.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "cli/connect/session.hpp"

namespace muniment::cli {

// Whether there is a run of that id that this user may see.
Result<bool> is_run(Session& session, const std::string& id);

// Errors: conflict, with `ways` to say which is meant ("--seq 3 or --run 3"), where digits are the id of a run, too.
Status check_is_only_seq(Session& session, const std::string& digits, std::string_view ways);

}  // namespace muniment::cli
