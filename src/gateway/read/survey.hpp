// What a run depends on, and what of that is damaged: asked when it is to be recovered, and when it is to go on after
// it was stopped.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "evidence/resolver.hpp"
#include "gateway/call.hpp"
#include "store/tables/runs.hpp"

namespace muniment::gateway {

struct Damage {
  evidence::Resolution found;
  std::vector<std::string> needed_by;
};

struct Survey {
  std::size_t checked = 0;
  std::vector<Damage> damage;
};

// Of everything that this run's claims, evidence and manifests depend on, and of what stopped it. Needs a reader.
Result<Survey> survey(Call& call, const store::Run& run);

}  // namespace muniment::gateway
