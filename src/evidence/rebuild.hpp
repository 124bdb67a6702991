// Rebuilding the derived tables: store/tables/rebuild.hpp, with what makes a pointer critical.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "store/logs/log_place.hpp"
#include "store/tables/rebuild.hpp"

namespace muniment::evidence {

struct RebuildReport {
  std::int64_t upto = -1;  // the last event that was read
  std::vector<store::RebuiltTable> tables;
  bool equal() const;
};

// `size`: of the log. `tables`: run, pointer, claim, evidence, evidence_link, task_change, task_evidence, artifact,
// corpus, document, chunk, feedback, report_run, report_span, report_place; empty: all of them. `change_of`: what an
// event does to documents, which is known above. Blocks for as long as it takes, at a third of one core.
Result<RebuildReport> rebuild(const store::LogPlace& place, std::int64_t size, const std::vector<std::string>& tables,
                              const store::CorpusChangeOf& change_of);

}  // namespace muniment::evidence
