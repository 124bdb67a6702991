// The check of type: evidence has the type that the task or the policy requires.
#include "evidence/completion/checks.hpp"

namespace muniment::evidence::completion {

void check_type(Case& c, Findings& findings) {
  const std::string_view task_asks = c.task.required_type, policy_asks = c.policy.required_type;
  for (const Exhibit& exhibit : c.exhibits) {
    const Piece& piece = *exhibit.piece;
    for (const std::string_view wanted : {task_asks, policy_asks}) {
      if (wanted.empty() || piece.type == wanted) continue;
      findings.add(Code::wrong_type, piece.evidence_id,
                   "Evidence mismatch: the type is \"" + piece.type + "\", the required type is \"" +
                       std::string(wanted) + "\". Record evidence of that type.");
      break;
    }
  }
}

}  // namespace muniment::evidence::completion
