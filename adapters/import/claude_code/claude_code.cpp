#include "adapters/import/claude_code/claude_code.hpp"

#include <filesystem>

#include "base/text.hpp"

namespace muniment::cli {

Result<ImportedSession> import_claude_code(Client& client, const std::string& path, ClaudeCodeSession& session,
                                           const std::function<void(std::int64_t, std::int64_t)>& progress, bool scrub,
                                           bool grows) {
  const std::string name = std::filesystem::path(path).stem();
  // A file that continues another session in a file of its own may repeat that session's id.
  RunTree tree(client, name, session.sha256(), claude_code_format, scrub,
               grows ? session_key(claude_code_format, name) : std::string());
  ImportedSession result;
  result.run_id = tree.run_id();
  ASSIGN_OR_RETURN(result.added, tree.start(session.head()));
  if (!result.added) return result;
  const auto carry_out = [&](std::vector<RunAction>& actions) { return tree.carry_out(actions); };
  if (const Status done = session.each(carry_out, progress); !done) return tree.broke_off(done.error());
  const SessionFacts& facts = session.facts();
  const std::string summary = !facts.title.empty() ? facts.title
                              : facts.answered     ? "the model ended its last turn"
                                                   : "the file ends within a turn";
  // The end of a turn does not show that the goal was reached; the result of a stream does.
  const RunEnd end = facts.end.outcome.empty() ? RunEnd{std::string(unknown_end), preview(summary, 1'000)} : facts.end;
  if (const Status ended = tree.end(end); !ended) return tree.broke_off(ended.error());
  result.added = !tree.is_unchanged();
  result.events = tree.events();
  result.artifacts = tree.artifacts();
  result.children = tree.children();
  result.tally = tree.tally();
  result.repaired = session.repaired();
  return result;
}

}  // namespace muniment::cli
