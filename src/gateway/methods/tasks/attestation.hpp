// The part of evidence.import that records a test result that another system attests.
#pragma once

#include <memory>

#include "gateway/call.hpp"
#include "store/tables/runs.hpp"

namespace muniment::gateway::methods {

// Verifies the parameter `envelope` with the keys of the setting attestation_keys, and records the test result as
// evidence of the run. A test result is recorded once, whoever imports it. Errors: denied if no trusted key signed it;
// conflict if its command is recorded from another statement or by another user.
Result<Answer> import_attestation(Call& call, const std::shared_ptr<store::Run>& run);

}  // namespace muniment::gateway::methods
