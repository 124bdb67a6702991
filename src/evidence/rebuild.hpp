// Rebuilds the derived tables: store/tables/rebuild.hpp, with the extraction of critical pointers.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "store/logs/log_place.hpp"
#include "store/tables/rebuild.hpp"

namespace muniment::evidence {

struct RebuildReport {
  std::int64_t upto = -1;  // seq of the last event read
  std::vector<store::RebuiltTable> tables;
  bool equal() const;
};

// `size` is the size of the log. `tables` are names among run, pointer, claim, evidence, evidence_link, task_change,
// task_evidence, artifact, corpus, document, chunk, feedback, report_run, report_span, report_place; empty: all of
// them. `change_of` returns the change that an event makes to documents, which only a higher layer knows. Blocks until
// the end, at a third of one core.
Result<RebuildReport> rebuild(const store::LogPlace& place, std::int64_t size, const std::vector<std::string>& tables,
                              const store::CorpusChangeOf& change_of);

}  // namespace muniment::evidence
