// Reads a request's evidence from the ledger, compares it with the log, and returns it in the form that the completion
// checks take.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "evidence/completion/completion.hpp"
#include "evidence/stop_rule.hpp"
#include "gateway/call.hpp"
#include "gateway/methods/knowledge/ledger_rows.hpp"

namespace muniment::gateway::methods {

// The task that the evidence is for. Without a run, it was not opened.
struct PiecesFor {
  std::string run_id;
  std::string task_id;
  std::optional<Time> opened_at;
};

struct Pieces {
  std::vector<evidence::completion::Piece> pieces;  // one for each requested id, in order
  // Parallel to `pieces`; nullopt if the ledger has none that the caller may see.
  std::vector<std::optional<EvidenceUse>> uses;
  evidence::Outcome outcome;  // events from their pointers, to be appended with the answer
};

// Reads and compares the pieces. Errors: those of the stop rule, and unavailable. Missing or damaged evidence is not an
// error.
Result<Pieces> read_pieces(Call& call, const std::vector<std::string>& ids, const PiecesFor& task);

}  // namespace muniment::gateway::methods
