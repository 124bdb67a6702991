// Runs the checks of completion on a task's evidence, and combines their findings into a judgement.
#include "evidence/completion/completion.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/text.hpp"
#include "evidence/completion/checks.hpp"
#include "evidence/completion/policy.hpp"
#include "evidence/completion/text/words.hpp"

namespace muniment::evidence::completion {
namespace {

using V = Verdict;

// The rows are in the order of Code.
constexpr std::array rows{
    CodeRow{Code::no_evidence, "existence", "no_evidence", V::fail, true, ""},
    CodeRow{Code::unknown, "existence", "unknown", V::fail, true, ""},
    CodeRow{Code::given_twice, "existence", "given_twice", V::fail, true, ""},
    CodeRow{Code::erased, "integrity", "erased", V::inconclusive, true, ""},
    CodeRow{Code::damaged, "integrity", "damaged", V::tampered, true, "tampering"},
    CodeRow{Code::wrong_type, "type", "wrong_type", V::fail, true, ""},
    CodeRow{Code::empty, "substance", "empty", V::fail, true, ""},
    CodeRow{Code::placeholder, "substance", "placeholder", V::weak, true, ""},
    CodeRow{Code::generic, "substance", "generic", V::weak, true, ""},
    CodeRow{Code::keyboard_mash, "substance", "keyboard_mash", V::fail, true, ""},
    CodeRow{Code::padded, "substance", "padded", V::weak, true, ""},
    CodeRow{Code::filler, "substance", "filler", V::fail, true, ""},
    CodeRow{Code::markup, "injection", "markup", V::fail, true, ""},
    CodeRow{Code::sql, "injection", "sql", V::fail, true, ""},
    CodeRow{Code::lookup, "injection", "lookup", V::fail, true, ""},
    CodeRow{Code::traversal, "injection", "traversal", V::fail, true, ""},
    CodeRow{Code::shell, "injection", "shell", V::fail, true, ""},
    CodeRow{Code::code, "injection", "code", V::fail, true, ""},
    CodeRow{Code::prompt, "injection", "prompt", V::fail, true, ""},
    CodeRow{Code::bidi, "injection", "bidi", V::fail, true, ""},
    CodeRow{Code::zero_width, "injection", "zero_width", V::fail, true, ""},
    CodeRow{Code::nul, "injection", "nul", V::fail, true, ""},
    CodeRow{Code::ansi, "injection", "ansi", V::fail, true, ""},
    CodeRow{Code::stale, "freshness", "stale", V::fail, true, "staleness"},
    CodeRow{Code::from_the_future, "freshness", "from_the_future", V::fail, true, ""},
    CodeRow{Code::clock_set_back, "freshness", "clock_set_back", V::inconclusive, true, ""},
    CodeRow{Code::dependency_damaged, "dependencies", "dependency_damaged", V::tampered, true, "tampering"},
    CodeRow{Code::dependency_unknown, "dependencies", "dependency_unknown", V::fail, true, ""},
    CodeRow{Code::dependency_erased, "dependencies", "dependency_erased", V::inconclusive, true, ""},
    CodeRow{Code::dependencies_cut, "dependencies", "dependencies_cut", V::inconclusive, true, ""},
    CodeRow{Code::dependency_stale, "dependencies", "dependency_stale", V::fail, true, "staleness"},
    CodeRow{Code::mismatch, "relevance", "mismatch", V::fail, true, ""},
    CodeRow{Code::unnamed, "relevance", "unnamed", V::weak, false, ""},
    CodeRow{Code::too_fast, "timing", "too_fast", V::fail, true, "too_fast"},
    CodeRow{Code::recycled, "timing", "recycled", V::fail, true, "recycling"},
    CodeRow{Code::copied, "timing", "copied", V::fail, true, "replay"},
    CodeRow{Code::replayed, "timing", "replayed", V::fail, true, "replay"},
    CodeRow{Code::resembles, "timing", "resembles", V::fail, true, "replay"},
    CodeRow{Code::same_actor, "timing", "same_actor", V::fail, true, ""},
    CodeRow{Code::forged_identity, "timing", "forged_identity", V::fail, true, "forgery"},
    CodeRow{Code::forged_record, "timing", "forged_record", V::fail, true, "forgery"},
    CodeRow{Code::imported_command, "timing", "imported_command", V::inconclusive, true, ""},
    CodeRow{Code::zero_tests, "structure", "zero_tests", V::fail, true, ""},
    CodeRow{Code::unlisted, "structure", "unlisted", V::weak, false, ""},
    CodeRow{Code::all_skipped, "structure", "all_skipped", V::fail, true, ""},
    CodeRow{Code::mostly_skipped, "structure", "mostly_skipped", V::weak, true, ""},
    CodeRow{Code::counts_disagree, "structure", "counts_disagree", V::fail, true, ""},
    CodeRow{Code::output_disagrees, "structure", "output_disagrees", V::fail, true, ""},
    CodeRow{Code::flaky_tests, "structure", "flaky_tests", V::pass, false, ""},
    CodeRow{Code::fewer_tests, "structure", "fewer_tests", V::fail, true, ""},
    CodeRow{Code::more_skipped, "structure", "more_skipped", V::fail, true, ""},
    CodeRow{Code::test_missing, "structure", "test_missing", V::weak, false, ""},
    CodeRow{Code::tests_failed, "structure", "tests_failed", V::fail, true, ""},
    CodeRow{Code::truncated, "structure", "truncated", V::inconclusive, true, ""},
    CodeRow{Code::not_ended, "structure", "not_ended", V::inconclusive, true, ""},
    CodeRow{Code::unreadable, "structure", "unreadable", V::inconclusive, true, ""},
    CodeRow{Code::command_failed, "structure", "command_failed", V::fail, true, ""},
    CodeRow{Code::exit_contradicts, "structure", "exit_contradicts", V::fail, true, ""},
    CodeRow{Code::exit_masked, "structure", "exit_masked", V::inconclusive, true, ""},
    CodeRow{Code::exit_unknown, "structure", "exit_unknown", V::inconclusive, true, ""},
    CodeRow{Code::interrupted, "structure", "interrupted", V::inconclusive, true, ""},
    CodeRow{Code::output_lost, "structure", "output_lost", V::inconclusive, true, ""},
    CodeRow{Code::old_report, "structure", "old_report", V::fail, true, "staleness"},
    CodeRow{Code::tree_changed, "structure", "tree_changed", V::fail, true, "staleness"},
    CodeRow{Code::tree_changed_in_run, "structure", "tree_changed_in_run", V::pass, false, ""},
    CodeRow{Code::tree_missing, "structure", "tree_missing", V::weak, false, ""},
    CodeRow{Code::other_tree, "structure", "other_tree", V::weak, false, ""},
    CodeRow{Code::other_base, "structure", "other_base", V::weak, false, ""},
    CodeRow{Code::edited_after, "structure", "edited_after", V::fail, true, "staleness"},
    CodeRow{Code::not_run, "structure", "not_run", V::fail, true, ""},
    CodeRow{Code::no_report, "structure", "no_report", V::weak, false, ""},
    CodeRow{Code::unknown_program, "structure", "unknown_program", V::weak, false, ""},
    CodeRow{Code::not_observed, "structure", "not_observed", V::weak, false, ""},
    CodeRow{Code::own_program, "structure", "own_program", V::weak, false, ""},
    CodeRow{Code::unknown_argument, "structure", "unknown_argument", V::weak, false, ""},
    CodeRow{Code::selection, "structure", "selection", V::weak, false, ""},
    CodeRow{Code::indirect_run, "structure", "indirect_run", V::weak, false, ""},
    CodeRow{Code::tests_changed, "structure", "tests_changed", V::fail, true, ""},
    CodeRow{Code::skips_added, "structure", "skips_added", V::weak, false, ""},
    CodeRow{Code::tests_weakened, "structure", "tests_weakened", V::fail, true, ""},
    CodeRow{Code::self_reported, "structure", "self_reported", V::weak, true, ""},
    CodeRow{Code::isolation, "structure", "isolation", V::fail, true, ""},
    CodeRow{Code::workflow_part, "structure", "workflow_part", V::fail, true, ""},
    CodeRow{Code::unpinned_workflow, "structure", "unpinned_workflow", V::weak, false, ""},
    CodeRow{Code::other_workflow, "structure", "other_workflow", V::fail, true, ""},
    CodeRow{Code::empty_golden, "structure", "empty_golden", V::fail, true, ""},
    CodeRow{Code::told_golden, "structure", "told_golden", V::weak, false, ""},
    CodeRow{Code::unread_implementation, "structure", "unread_implementation", V::fail, true, ""},
};

constexpr bool in_order = [] {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (static_cast<std::size_t>(rows[i].code) != i) return false;
  }
  return rows.size() == static_cast<std::size_t>(Code::unread_implementation) + 1;
}();
static_assert(in_order);

// The checks in order of precedence: the first blocking finding gives the reason.
constexpr std::array checks{check_existence, check_integrity,    check_type,      check_substance, check_injection,
                            check_freshness, check_dependencies, check_relevance, check_timing,    check_structure};

// Returns the words of a command that can name a subject: of a test runner, what it runs, and not how (`-p
// no:cacheprovider`); of other programs, all but settings.
std::vector<std::string> subjects_of(const Command& command, const CommandKind& kind) {
  std::vector<std::string> words;
  if (kind.runner == nullptr || !kind.read.unknown.empty()) {
    std::ranges::copy_if(command.argv, std::back_inserter(words),
                         [](const std::string& word) { return word.find('=') == std::string::npos; });
    return words;
  }
  words = {kind.name, kind.read.selection.argument};
  words.insert(words.end(), kind.read.operands.begin(), kind.read.operands.end());
  return words;
}

// Fills the exhibit in place, because its text is a view into its own members.
void read_exhibit(Exhibit& exhibit, const Piece& piece, const TaskTerms& terms, const Policy& policy) {
  exhibit.piece = &piece;
  if (piece.erased || !piece.damage.empty()) return;  // the content is not judged
  read_content(exhibit);
  exhibit.profile = profile_of(exhibit.text, terms);
  exhibit.summary = summary_of(exhibit.text);
  if (!exhibit.structured) cover(exhibit.profile, exhibit.flat, terms);
  cover(exhibit.profile, piece.type, terms);
  if (piece.command) {
    exhibit.command = kind_of(piece.command->argv, policy.runners);
    exhibit.subjects = subjects_of(*piece.command, *exhibit.command);
    for (const std::string& word : exhibit.subjects) cover(exhibit.profile, word, terms);
    exhibit.report = piece.command->report;
  } else {
    exhibit.report = reports::read_report(piece.text);
  }
}

int rank_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass: return 0;
    case Verdict::weak: return 1;
    case Verdict::inconclusive: return 2;
    case Verdict::fail: return 3;
    case Verdict::tampered: return 4;
  }
  return 3;
}

// Only a recorded command completes a task under the strict policy, or if the policy refuses texts.
void demand_strength(const Case& c, Findings& findings) {
  if (!c.task.requires_evidence || c.pieces.empty()) return;
  if (!c.policy.strict) {
    if (c.policy.text == TextRule::refuse && std::ranges::none_of(c.exhibits, &Exhibit::recorded))
      findings.add(Code::self_reported, "",
                   "Weak evidence: the policy accepts no text without a recorded command. Record one with " +
                       exec_line(c.task) + ".");
    return;
  }
  const bool strong = std::ranges::any_of(c.exhibits, [&](const Exhibit& exhibit) {
    const bool accepted = c.policy.text == TextRule::accept && !exhibit.recorded();
    return exhibit.strong || (accepted && !findings.blocked(exhibit.piece->evidence_id));
  });
  if (strong) return;
  const auto weak = std::find_if(c.exhibits.begin(), c.exhibits.end(),
                                 [](const Exhibit& exhibit) { return exhibit.weakness.has_value(); });
  if (weak != c.exhibits.end()) {
    findings.refuse(weak->weakness->code, weak->piece->evidence_id, weak->weakness->text);
    return;
  }
  if (needs_test_run(c)) {
    findings.add(
        Code::self_reported, "",
        "Weak evidence: the task mentions tests, and the strict policy accepts only a recorded run of a test runner "
        "whose report or output counts tests that passed; no piece is one. Record it with " +
            exec_line(c.task, "test_output") + ".");
    return;
  }
  findings.add(Code::self_reported, "",
               "Weak evidence: the strict policy accepts only a recorded command that passed, and no piece is one. "
               "Record it with " +
                   exec_line(c.task) + ".");
}

std::vector<PieceStatus> statuses_of(const Case& c, const std::vector<Finding>& findings) {
  std::vector<PieceStatus> statuses;
  WordTable seen;
  for (const Piece& piece : c.pieces) {
    if (!seen.add(hash_of(piece.evidence_id))) continue;
    PieceStatus status;
    status.evidence_id = piece.evidence_id;
    status.exists = piece.found;
    status.type = piece.type;
    status.actor = piece.actor;
    const auto first = std::find_if(findings.begin(), findings.end(),
                                    [&](const Finding& f) { return f.blocks && f.evidence_id == piece.evidence_id; });
    status.valid = first == findings.end();
    if (!status.valid) {
      status.reason = first->text;
      status.code = first->code;
    }
    const auto exhibit = std::find_if(c.exhibits.begin(), c.exhibits.end(),
                                      [&](const Exhibit& e) { return e.piece->evidence_id == piece.evidence_id; });
    status.strong = status.valid && exhibit != c.exhibits.end() && exhibit->strong;
    statuses.push_back(std::move(status));
  }
  return statuses;
}

std::string why_complete(const Case& c, const Judgement& judgement) {
  if (c.pieces.empty()) return "The task requires no evidence.";
  const auto strong = std::count_if(judgement.evidence_status.begin(), judgement.evidence_status.end(),
                                    [](const PieceStatus& status) { return status.strong; });
  const std::size_t count = judgement.evidence_status.size();
  return std::to_string(count) + (count == 1 ? " piece of evidence passed" : " pieces of evidence passed") +
         " every check; " + std::to_string(strong) + " recorded by the daemon.";
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass: return "pass";
    case Verdict::weak: return "weak";
    case Verdict::fail: return "fail";
    case Verdict::tampered: return "tampered";
    case Verdict::inconclusive: return "inconclusive";
  }
  return "fail";
}

std::string exec_line(const Task& task, std::string_view type) {
  return "`muniment exec --run " + (task.run_id.empty() ? "RUN" : shell_word(task.run_id)) + " --evidence " +
         std::string(type) + " --task " + (task.task_id.empty() ? "ID" : shell_word(task.task_id)) + " -- COMMAND`";
}

std::span<const CodeRow> code_rows() { return rows; }

const CodeRow& row_of(Code code) { return rows[static_cast<std::size_t>(code)]; }

void Findings::add(Code code, std::string_view evidence_id, std::string text) {
  const CodeRow& row = row_of(code);
  const bool allowed = std::find(policy_.allowed.begin(), policy_.allowed.end(), row.name) != policy_.allowed.end();
  findings_.push_back({row.check, row.name, row.verdict, row.blocks && !allowed, row.violation,
                       std::string(evidence_id),
                       allowed ? std::move(text) + " Allowed by the policy." : std::move(text)});
}

void Findings::refuse(Code code, std::string_view evidence_id, std::string text) {
  const CodeRow& row = row_of(code);
  findings_.push_back(
      {row.check, row.name, row.verdict, true, row.violation, std::string(evidence_id), std::move(text)});
}

void Findings::note(Code code, std::string_view evidence_id, std::string text) {
  const CodeRow& row = row_of(code);
  findings_.push_back({row.check, row.name, row.verdict, false, "", std::string(evidence_id), std::move(text)});
}

bool Findings::blocked(std::string_view evidence_id) const {
  return std::any_of(findings_.begin(), findings_.end(),
                     [&](const Finding& f) { return f.blocks && f.evidence_id == evidence_id; });
}

void refuse(Judgement& judgement, Finding finding) {
  finding.blocks = true;
  if (judgement.can_complete) judgement.reason = finding.text;
  if (rank_of(finding.verdict) > rank_of(judgement.verdict)) judgement.verdict = finding.verdict;
  judgement.can_complete = false;
  for (PieceStatus& status : judgement.evidence_status) {
    if (status.evidence_id != finding.evidence_id || !status.valid) continue;
    status.valid = status.strong = false;
    status.reason = finding.text;
    status.code = finding.code;
  }
  judgement.findings.push_back(std::move(finding));
}

Judgement judge(const Task& task, std::span<const Piece> pieces, const Policy& policy, Time now) {
  Case c{task, policy, now, terms_of(task.content), {}, pieces};
  WordTable seen;
  c.exhibits.reserve(pieces.size());  // no reallocation may move an exhibit
  for (const Piece& piece : pieces) {
    if (piece.found && seen.add(hash_of(piece.evidence_id)))
      read_exhibit(c.exhibits.emplace_back(), piece, c.terms, policy);
  }
  Findings findings(policy);
  for (const auto check : checks) check(c, findings);
  demand_strength(c, findings);
  Judgement judgement;
  judgement.findings = std::move(findings).take();
  judgement.verdict = Verdict::pass;
  const Finding* first = nullptr;
  for (const Finding& finding : judgement.findings) {
    if (!finding.blocks) continue;
    if (first == nullptr) first = &finding;
    if (rank_of(finding.verdict) > rank_of(judgement.verdict)) judgement.verdict = finding.verdict;
  }
  judgement.can_complete = first == nullptr;
  judgement.evidence_status = statuses_of(c, judgement.findings);
  judgement.reason = first != nullptr ? first->text : why_complete(c, judgement);
  return judgement;
}

}  // namespace muniment::evidence::completion
