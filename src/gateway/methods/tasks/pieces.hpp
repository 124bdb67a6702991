// The evidence of a request, read from the ledger and held against the log, as the checks of completion take it.
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

// The task that the evidence is for; without a run it was not opened.
struct PiecesFor {
  std::string run_id;
  std::string task_id;
  std::optional<Time> opened_at;
};

struct Pieces {
  std::vector<evidence::completion::Piece> pieces;  // one for each id that was sent, in order
  std::vector<std::optional<EvidenceUse>> uses;     // theirs; nullopt where the ledger has none that the caller may see
  evidence::Outcome outcome;                        // of their pointers, to be appended with the answer
};

// Errors: those of the stop rule and unavailable; evidence that is missing or damaged is none.
Result<Pieces> read_pieces(Call& call, const std::vector<std::string>& ids, const PiecesFor& task);

}  // namespace muniment::gateway::methods
