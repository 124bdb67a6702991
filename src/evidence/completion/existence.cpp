// The check of existence: evidence is given, known to the log, and not given twice.
#include "evidence/completion/checks.hpp"
#include "evidence/completion/text/words.hpp"

namespace muniment::evidence::completion {

void check_existence(Case& c, Findings& findings) {
  if (c.pieces.empty()) {
    if (!c.task.requires_evidence) return;
    findings.add(Code::no_evidence, "",
                 "No evidence provided: the task requires evidence. Record it with " + exec_line(c.task) +
                     " or evidence.record, and pass its id.");
    return;
  }
  WordTable seen;
  for (const Piece& piece : c.pieces) {
    if (!seen.add(hash_of(piece.evidence_id))) {
      findings.add(Code::given_twice, piece.evidence_id, "duplicate: this evidence is given twice. Pass each id once.");
      continue;
    }
    if (!piece.found) {
      findings.add(Code::unknown, piece.evidence_id,
                   "Evidence not found: no evidence has this id. Check it with evidence.list.");
    }
  }
}

}  // namespace muniment::evidence::completion
