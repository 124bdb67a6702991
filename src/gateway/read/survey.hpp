// Finds the dependencies of a run and which of them are damaged, before the run is recovered or resumed.
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

// Resolves all dependencies of the run's claims, evidence and manifests, and the pointer that stopped it. Needs a
// reader.
Result<Survey> survey(Call& call, const store::Run& run);

}  // namespace muniment::gateway
