// The checks of completion: their codes, their input and their findings. Each check is a function in a file of its own;
// completion.cpp has the tables of codes and checks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "evidence/completion/completion.hpp"
#include "evidence/completion/policy.hpp"
#include "evidence/completion/text/command_line.hpp"
#include "evidence/completion/text/profile.hpp"
#include "evidence/completion/text/summary.hpp"
#include "evidence/completion/text/task_terms.hpp"
#include "evidence/reports/report.hpp"

namespace muniment::evidence::completion {

enum class Code : std::uint8_t {
  no_evidence,
  unknown,
  given_twice,
  erased,
  damaged,
  wrong_type,
  empty,
  placeholder,
  generic,
  keyboard_mash,
  padded,
  filler,
  markup,
  sql,
  lookup,
  traversal,
  shell,
  code,
  prompt,
  bidi,
  zero_width,
  nul,
  ansi,
  stale,
  from_the_future,
  clock_set_back,
  dependency_damaged,
  dependency_unknown,
  dependency_erased,
  dependencies_cut,
  dependency_stale,
  mismatch,
  unnamed,
  too_fast,
  recycled,
  copied,
  replayed,
  resembles,
  same_actor,
  forged_identity,
  forged_record,
  imported_command,
  zero_tests,
  unlisted,
  all_skipped,
  mostly_skipped,
  counts_disagree,
  output_disagrees,
  flaky_tests,
  fewer_tests,
  more_skipped,
  test_missing,
  tests_failed,
  truncated,
  not_ended,
  unreadable,
  command_failed,
  exit_contradicts,
  exit_masked,
  exit_unknown,
  interrupted,
  output_lost,
  old_report,
  tree_changed,
  tree_changed_in_run,
  tree_missing,
  other_tree,
  other_base,
  edited_after,
  not_run,
  no_report,
  unknown_program,
  not_observed,
  own_program,
  unknown_argument,
  selection,
  indirect_run,
  tests_changed,
  skips_added,
  tests_weakened,
  self_reported,
  isolation,
  workflow_part,
  unpinned_workflow,
  other_workflow,
  empty_golden,
  told_golden,
  unread_implementation,
};

struct CodeRow {
  Code code;
  std::string_view check;
  std::string_view name;
  Verdict verdict;
  bool blocks;
  std::string_view violation;  // kind of the violation.detected event; empty: none
};

std::span<const CodeRow> code_rows();
const CodeRow& row_of(Code code);

// Outcome that the numbers and booleans in the evidence's JSON state.
struct StatedOutcome {
  bool failed = false;     // "approved": false, "failures": 2, "exit_code": 1
  bool no_tests = false;   // "total": 0
  bool disagrees = false;  // "total": 60, "passed": 6, "failed": 0, "skipped": 0
  bool poses = false;      // has members that only the daemon sets: command_id, nonce, tree_digest
  std::string member;      // the first member that states a failure
  std::size_t half_facts = 0;
};

struct Weakness {
  Code code;
  std::string text;
};

// A piece of evidence with the values that are computed from it once.
struct Exhibit {
  const Piece* piece = nullptr;
  bool structured = false;  // the content is JSON without a text
  std::string flat;         // the JSON's members, without a text, as lines "name: value"
  std::string_view text;    // the judged text: the text of the piece, or `flat`
  Profile profile;
  Summary summary;
  std::optional<reports::Report> report;
  StatedOutcome outcome;
  std::optional<CommandKind> command;
  std::vector<std::string> subjects;  // the words of the command that can name a subject, the program first
  bool tells_subject = false;         // set by injection: the task is about attacks like those in the text
  bool strong = false;                // set by structure
  std::optional<Weakness> weakness;   // set by structure: the first reason why it is not strong

  bool recorded() const { return piece->command.has_value(); }
  // Returns whether the daemon compared the outputs of a blind workflow.
  bool is_comparison() const { return recorded() && report && report->format == reports::golden_format; }
  bool has_whole_report() const { return report && report->complete && report->problem.empty(); }
};

struct Case {
  const Task& task;
  const Policy& policy;
  Time now;
  TaskTerms terms;
  std::vector<Exhibit> exhibits;  // one for each piece found
  std::span<const Piece> pieces;
};

class Findings {
 public:
  explicit Findings(const Policy& policy) : policy_(policy) {}
  void add(Code code, std::string_view evidence_id, std::string text);
  // Adds a finding that blocks, regardless of the table.
  void refuse(Code code, std::string_view evidence_id, std::string text);
  // Adds a finding that does not block, regardless of the table.
  void note(Code code, std::string_view evidence_id, std::string text);
  const std::vector<Finding>& all() const { return findings_; }
  std::vector<Finding> take() && { return std::move(findings_); }
  bool blocked(std::string_view evidence_id) const;

 private:
  const Policy& policy_;
  std::vector<Finding> findings_;
};

void check_existence(Case& c, Findings& findings);
void check_integrity(Case& c, Findings& findings);
void check_type(Case& c, Findings& findings);
void check_substance(Case& c, Findings& findings);
void check_injection(Case& c, Findings& findings);
void check_freshness(Case& c, Findings& findings);
void check_dependencies(Case& c, Findings& findings);
void check_relevance(Case& c, Findings& findings);
void check_timing(Case& c, Findings& findings);
void check_structure(Case& c, Findings& findings);

// content.cpp: reads the piece's text and JSON. The caller has set `exhibit.piece`.
void read_content(Exhibit& exhibit);

// freshness.cpp: the time at which the piece was recorded or its command ended, whichever is earlier.
Time made_at(const Piece& piece);
// Returns whether the piece is older than the limit, has expired, or was recorded after `now`.
bool is_outdated(const Piece& piece, std::chrono::seconds fresh_for, Time now);

bool is_test_evidence(const Exhibit& exhibit);

// completion.cpp: the command line, in backquotes, that records evidence of the type for the task.
std::string exec_line(const Task& task, std::string_view type = "TYPE");

// structure.cpp: whether the task mentions tests or names a runner.
bool asks_for_tests(const Case& c);
// Returns whether the task asks for tests, and the policy requires no other type of evidence. The type that the task
// requires comes from the client, and cannot loosen the policy.
bool needs_test_run(const Case& c);

}  // namespace muniment::evidence::completion
