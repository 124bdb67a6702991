// Rebuilding the derived tables: store/rebuild.hpp, with what makes a pointer critical.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "store/rebuild.hpp"

namespace muniment::evidence {

struct RebuildReport {
  std::int64_t upto = -1;                    // the last event that was read
  std::vector<store::RebuiltTable> tables;
  bool equal() const;
};

// `size`: of the log. `tables`: run, pointer, claim, evidence, evidence_link, artifact; empty: all of them.
// Blocks for as long as it takes, at a third of one core.
Result<RebuildReport> rebuild(const std::string& uri, std::int64_t size, const std::vector<std::string>& tables);

}  // namespace muniment::evidence
