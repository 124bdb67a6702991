// Prints the decision of task.validate and task.complete.
#pragma once

#include <string_view>

#include "client/connect/session.hpp"

namespace muniment::cli {

// Prints the verdict and the findings, and sets the exit code.
Status tell_judgement(Session& session, const Message& answer, std::string_view good, std::string_view bad);

}  // namespace muniment::cli
