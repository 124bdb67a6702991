// Custom validators: programs of the completion policy that may refuse a completion that the daemon's checks admit.
#pragma once

#include <span>

#include "evidence/completion/completion.hpp"
#include "evidence/completion/policy.hpp"
#include "gateway/call.hpp"

namespace muniment::gateway::methods {

// Runs the policy's validators in order until one refuses. A validator that fails, returns invalid output or times out
// blocks the completion as inconclusive. Errors: over_budget if too many run at once.
Status ask_custom_validators(const Call& call, const evidence::completion::Task& task,
                             std::span<const evidence::completion::Piece> pieces,
                             const evidence::completion::Policy& policy, evidence::completion::Judgement& judgement);

}  // namespace muniment::gateway::methods
