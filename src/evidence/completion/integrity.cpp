// The check of integrity: the stored bytes match the recorded hash.
#include "evidence/completion/checks.hpp"

namespace muniment::evidence::completion {

void check_integrity(Case& c, Findings& findings) {
  for (const Exhibit& exhibit : c.exhibits) {
    const Piece& piece = *exhibit.piece;
    if (piece.erased) {
      findings.add(Code::erased, piece.evidence_id,
                   "The content of this evidence was erased and cannot be judged. Record new evidence.");
    } else if (!piece.damage.empty()) {
      findings.add(Code::damaged, piece.evidence_id,
                   "The evidence was tampered with: " + piece.damage +
                       ". Its stored bytes differ from what was recorded. Record new "
                       "evidence.");
    }
  }
}

}  // namespace muniment::evidence::completion
