// Whether a task may be completed with the evidence that is given for it. Pure: the gateway collects the task and its
// evidence from the log, `judge` holds them against a policy. docs/evidence.md describes the checks for users.
#pragma once

#include <array>
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
  std::string task_id;  // empty: not opened; judged by its content alone
  std::string content;
  std::string type;           // of the task, names a section of the policy; empty: the default section
  std::string required_type;  // of the evidence; empty: the policy's, or any
  bool requires_evidence = true;
  std::string actor;              // who opened it; empty where it was not opened
  std::optional<Time> opened_at;  // by the daemon's clock
  std::string tree_digest;        // of the working tree that is completed; empty: unknown
  bool files_changed = false;     // file.changed events in the task's run after the newest evidence
  std::string run_id;             // empty: no run was named
};

// A command that `muniment exec` recorded, as its events say.
struct Command {
  std::vector<std::string> argv;
  std::string cwd;
  std::optional<std::int64_t> exit_code;  // nullopt: ended by a signal, or its end is not recorded
  std::string signal;
  bool interrupted = false;  // the recorder stopped before the command did
  bool output_lost = false;
  Time started_at{}, ended_at{};           // by the daemon's clock
  std::string tree_before, tree_after;     // digests; empty: unknown
  std::optional<reports::Report> report;   // from its output, or the report file that it wrote
  std::optional<Time> report_modified_at;  // of that file
  std::vector<std::string> tests_changed;  // paths of tests and their configuration that differ from the task's start
  std::string tests_changed_reason;
  std::optional<reports::Counts> earlier;  // of the last accepted report of the same command
};

// One piece of evidence, as the log has it.
struct Piece {
  std::string evidence_id;
  bool found = false;  // false: nothing else is set
  bool erased = false;
  std::string damage;  // why the stored bytes are not what was recorded; empty: they are
  std::string type;
  std::string text;          // content.text; otherwise the canonical JSON of the content, or what the pointer names
  std::string content;       // JSON object; empty for a pointer
  std::string actor;         // the authenticated actor that recorded it
  std::string validator_id;  // the client's word
  Time recorded_at{};        // by the daemon's clock
  std::optional<Time> stated_at;  // the timestamp of an imported record: counts where it is older
  bool imported = false;
  std::string spent_on;  // the task that was completed with it, or with the same content; empty: none
  bool recorded_before_task = false;
  std::string copied_from;  // evidence with the same hash that was recorded earlier; empty: none
  std::string resembles;    // evidence of another task with another hash and the same shape_of(text); empty: none
  bool names_other_actor = false;  // validator_id is the name of another actor of the log than `actor`
  std::optional<Command> command;  // set where the daemon made the evidence from a recorded command
};

enum class Verdict : std::uint8_t { pass, weak, fail, tampered, inconclusive };
std::string_view name_of(Verdict verdict);

// One result of a check about one piece, or about the task as a whole (empty evidence_id).
struct Finding {
  std::string_view check{};  // "substance"
  std::string_view code{};   // "placeholder"; the table of codes is in completion.cpp
  Verdict verdict = Verdict::fail;
  bool blocks = true;            // false: noted
  std::string_view violation{};  // kind of the violation.detected event; empty: none
  std::string evidence_id{};
  std::string text{};  // for the user: what is wrong, what is expected, what to do
};

struct PieceStatus {
  std::string evidence_id;
  bool exists = false;
  bool valid = false;   // no finding blocks
  bool strong = false;  // made by the daemon from a recorded command that passed
  std::string type, actor;
  std::string reason;  // of its first blocking finding; empty where valid
  std::string_view code;
};

struct Judgement {
  bool can_complete = false;
  Verdict verdict = Verdict::fail;
  std::string reason;  // of the first finding that blocks, in the table's order; otherwise why it may be completed
  std::vector<PieceStatus> evidence_status;  // in the order given, duplicates once
  std::vector<Finding> findings;
};

// Hash of the text without its numbers, so that a copy with new numbers has the same shape; empty where the text has
// too few words to be told from another by them (shape_words_min), or is the output of tests, which honest runs repeat.
inline constexpr std::size_t shape_words_min = 8;
std::string shape_of(std::string_view text);

// Adds a finding that blocks: the judgement can only become stricter.
void refuse(Judgement& judgement, Finding finding);

Judgement judge(const Task& task, std::span<const Piece> pieces, const Policy& policy, Time now);

}  // namespace muniment::evidence::completion
