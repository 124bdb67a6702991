// The checks of timing and reuse: a task takes at least the time of its type, evidence completes only one task, and the
// policy accepts the actor that recorded it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/text.hpp"
#include "evidence/completion/checks.hpp"

namespace muniment::evidence::completion {
namespace {

constexpr std::int64_t second_micros = 1'000'000;
// An agent may open its task when the work is nearly done; older evidence was made for another purpose.
constexpr std::chrono::seconds early_evidence_max{30 * 60};

void check_reuse(const Case& c, const Exhibit& exhibit, Findings& findings) {
  const Piece& piece = *exhibit.piece;
  if (!piece.spent_on.empty() && piece.spent_on != c.task.task_id) {
    findings.add(Code::recycled, piece.evidence_id,
                 "duplicate: this evidence, or the same content, completed task " + piece.spent_on +
                     ". Record evidence of this task.");
  } else if (!piece.copied_from.empty()) {
    findings.add(Code::copied, piece.evidence_id,
                 "duplicate: the content is the same as that of evidence " + piece.copied_from +
                     ", which was recorded earlier. Run the "
                     "check again and record its own output.");
  } else if (!piece.resembles.empty()) {
    findings.add(Code::resembles, piece.evidence_id,
                 "duplicate: the content differs from evidence " + piece.resembles +
                     " only in its numbers. Run the check again with "
                     "`muniment exec`.");
  }
  const std::int64_t limit =
      std::min<std::int64_t>(c.policy.fresh_for.count(), early_evidence_max.count()) * second_micros;
  const Time made = made_at(piece);
  if (c.task.opened_at && c.task.opened_at->micros - made.micros >= limit) {
    findings.add(Code::replayed, piece.evidence_id,
                 fmt::format("stale: the {} {} before the task was opened. Record evidence of this task.",
                             made < piece.recorded_at ? "command of the evidence ended" : "evidence was recorded",
                             human_duration(c.task.opened_at->micros - made.micros)));
  }
}

void check_actor(const Case& c, const Exhibit& exhibit, Findings& findings) {
  const Piece& piece = *exhibit.piece;
  if (piece.names_other_actor) {
    findings.add(Code::forged_identity, piece.evidence_id,
                 "The validator_id \"" + piece.validator_id + "\" is the name of another actor than \"" + piece.actor +
                     "\", which recorded the evidence. "
                     "The validator must record it itself.");
  }
  if (!exhibit.recorded() && exhibit.outcome.poses && piece.imported) {
    findings.add(Code::imported_command, piece.evidence_id,
                 "imported: the command of this evidence was not recorded here, and anyone can write such a file. "
                 "Run the command here: " +
                     exec_line(c.task, piece.type) + ".");
  } else if (!exhibit.recorded() && exhibit.outcome.poses) {
    findings.add(
        Code::forged_record, piece.evidence_id,
        "The content contains members that only the daemon writes (command_id, nonce, tree digests), but no recorded "
        "command "
        "belongs to it. Record the command with `muniment exec`.");
  }
  // If an actor is unknown, the evidence does not count as that of a different actor.
  const bool other = !piece.actor.empty() && !c.task.actor.empty() && piece.actor != c.task.actor;
  if (c.policy.other_actor && !other) {
    findings.add(
        Code::same_actor, piece.evidence_id,
        "The policy requires evidence from an actor other than the task's; \"" + piece.actor + "\" recorded this one" +
            (piece.validator_id.empty() || piece.validator_id == piece.actor ? std::string()
                                                                             : ", whatever validator_id says") +
            ". Ask another actor to record it.");
  }
}

}  // namespace

void check_timing(Case& c, Findings& findings) {
  if (c.task.opened_at && c.policy.at_least.count() > 0) {
    const std::int64_t took = c.now.micros - c.task.opened_at->micros;
    if (took < c.policy.at_least.count() * second_micros) {
      findings.add(
          Code::too_fast, "",
          fmt::format(
              "The task was open for {}; a task of this type takes at least {} s. Complete it when the work is done.",
              human_duration(std::max<std::int64_t>(took, 0)), c.policy.at_least.count()));
    }
  }
  for (const Exhibit& exhibit : c.exhibits) {
    check_reuse(c, exhibit, findings);
    check_actor(c, exhibit, findings);
  }
}

}  // namespace muniment::evidence::completion
