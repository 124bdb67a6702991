// Decides whether a task may be completed with the given evidence. Pure: the gateway collects the task and its evidence
// from the log, and `judge` checks them against a policy. docs/evidence.md describes the checks for users.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "evidence/reports/report.hpp"

namespace muniment::evidence::completion {

struct Policy;  // policy.hpp

struct Task {
  std::string task_id;  // empty: the task was not opened, and is judged by its content alone
  std::string content;
  std::string type;           // type of the task, which names a section of the policy; empty: the default section
  std::string required_type;  // required type of evidence; empty: the policy's, or any
  bool requires_evidence = true;
  std::string actor;              // the actor that opened the task; empty: not opened
  std::optional<Time> opened_at;  // time by the daemon's clock
  std::string tree_digest;        // digest of the working tree at completion; empty: unknown
  bool files_changed = false;     // file.changed events in the task's run after the newest evidence
  std::string run_id;             // empty: the task has no run
  std::string tree_opened{};      // digest of the working tree in which it was opened; empty: none
  bool tree_observed = false;     // the daemon's executor computed `tree_digest`
  std::string workflow{};         // digest of the only workflow whose comparison completes it; empty: any evidence
};

// A recorded command, from its events.
struct Command {
  bool observed = false;  // the daemon's executor started it and read its output; otherwise a client reported it
  std::vector<std::string> argv;
  bool argv_cut = false;  // more arguments follow, which were too long for the event
  std::string cwd;
  // The commit with which its tests were compared, and the time since which programs and ignored files counted as
  // changed: those of the task for which the command was recorded; nullopt: none.
  std::string base_commit;
  std::optional<Time> base_opened_at;
  std::string own_program;  // the reason why the program that ran is the agent's own; empty: none was found
  std::string left_out;     // a file of tests that the command line leaves out; empty: none was found
  std::optional<std::int64_t> exit_code;  // nullopt: ended by a signal, or the end is not recorded
  std::string signal;
  bool interrupted = false;  // the recorder stopped before the command
  bool output_lost = false;
  Time started_at{}, ended_at{};           // times by the daemon's clock
  std::string tree_before, tree_after;     // digests; empty: unknown
  std::optional<reports::Report> report;   // report in the command's output, or the sum of its report files
  std::int64_t report_files = 0;           // 0: the report is in the output
  std::optional<reports::Counts> output;   // counts that the output states beside report files
  std::optional<Time> report_modified_at;  // time of the last change of the oldest report file
  std::optional<Time> report_newest_at;    // that of the newest
  std::vector<std::string> tests_changed;  // paths of tests and their configuration that changed since the task began
  std::string tests_changed_reason;
  std::string tests_diff;                  // the changed lines of these tests
  std::vector<std::string> skips_added;    // other paths that gained lines which skip tests since the task began
  std::string isolation;                   // isolation that its sandbox reached; empty: none
  std::string coder_isolation;             // for the tester of a blind workflow: that of the coder; otherwise empty
  bool workflow_part = false;              // a step of a blind workflow before the comparison
  std::string workflow;                    // for a comparison: digest of the workflow; empty: unknown
  bool golden_empty = false;               // for a comparison: no golden file contains more than white space
  bool golden_told = false;                // for a comparison: the coder could read every golden file
  bool unread = false;                     // it opened no file of the implementation that it was to examine
  std::optional<reports::Counts> earlier;  // counts of the last accepted report of the same command
  std::vector<std::string> tests_missing;  // tests that failed in an earlier run for the task, and neither ran now
  std::int64_t ran_before = 0;             // most tests that the same command ran before for the task; 0: unknown
};

// A piece of evidence, from the log.
struct Piece {
  std::string evidence_id;
  bool found = false;  // false: the other members are not set
  bool erased = false;
  std::string damage;  // how the stored bytes differ from the recorded hash; empty: intact
  std::string type;
  std::string text;          // content.text; otherwise the canonical JSON of the content, or the target of the pointer
  std::string content;       // JSON object; empty for a pointer
  std::string actor;         // the authenticated actor that recorded it
  std::string validator_id;  // stated by the client
  Time recorded_at{};        // time by the daemon's clock
  std::optional<Time> stated_at;  // the timestamp of an imported record; used if it is earlier
  bool imported = false;
  std::string spent_on;  // the task that was completed with this piece, or with the same content; empty: none
  bool recorded_before_task = false;
  std::string copied_from;  // earlier evidence with the same hash; empty: none
  std::string resembles;    // evidence of another task with a different hash and the same shape_of(text); empty: none
  bool names_other_actor = false;  // validator_id is the name of an actor of the log other than `actor`
  bool dependencies_cut = false;   // some dependencies were not read: too many, or too far
  std::optional<Command> command;  // set if the daemon made the evidence from a recorded or attested command
  std::string attested_by;         // trusted key that vouches for it, instead of a recorder; empty: none
  std::optional<Time> expires_at;  // nullopt: it does not expire
  std::vector<std::string> depends_on;
  // Direct and indirect dependencies, each once, in the order of their distance. They have neither text nor
  // dependencies of their own.
  std::vector<Piece> dependencies;
};

// A dependency because of which evidence is refused.
struct BrokenDependency {
  std::string evidence_id;  // empty: there are too many
  std::string_view code;    // code of the finding
  std::string text;
};

// Returns the first dependency with the gravest fault: tampered, unknown, erased, too many, stale. nullopt: all are
// intact and fresh.
std::optional<BrokenDependency> broken_dependency(const Piece& piece, std::chrono::seconds fresh_for, Time now);

enum class Verdict : std::uint8_t { pass, weak, fail, tampered, inconclusive };
std::string_view name_of(Verdict verdict);

// A result of a check, about one piece or about the whole task (empty evidence_id).
struct Finding {
  std::string_view check{};  // "substance"
  std::string_view code{};   // "placeholder"; the table of codes is in completion.cpp
  Verdict verdict = Verdict::fail;
  bool blocks = true;            // false: the finding is only noted
  std::string_view violation{};  // kind of the violation.detected event; empty: none
  std::string evidence_id{};
  std::string text{};  // text for the user: fault, expected value, remedy
};

struct PieceStatus {
  std::string evidence_id;
  bool exists = false;
  bool valid = false;   // no finding blocks
  bool strong = false;  // made by the daemon from a recorded command that passed
  std::string type, actor;
  std::string reason;  // code of its first blocking finding; empty if valid
  std::string_view code;
};

struct Judgement {
  bool can_complete = false;
  Verdict verdict = Verdict::fail;
  std::string reason;  // text of the first blocking finding, in the table's order; otherwise the reason for acceptance
  std::vector<PieceStatus> evidence_status;  // in the order given, without duplicates
  std::vector<Finding> findings;
};

// Returns the hash of the text without its numbers, so that a copy with new numbers has the same shape. Returns an
// empty text if there are fewer than shape_words_min words, which are too few to identify it, or if the text is the
// output of tests, which repeats in honest runs.
inline constexpr std::size_t shape_words_min = 8;
std::string shape_of(std::string_view text);

// Adds a blocking finding: the judgement can only become stricter.
void refuse(Judgement& judgement, Finding finding);

Judgement judge(const Task& task, std::span<const Piece> pieces, const Policy& policy, Time now);

}  // namespace muniment::evidence::completion
