// A task, a piece of evidence and their judgement; members that a test does not set have values that pass.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/completion/completion.hpp"
#include "evidence/completion/policy.hpp"

namespace muniment::evidence::completion {

inline constexpr std::int64_t second = 1'000'000, hour = 3'600 * second, day = 24 * hour;
inline constexpr Time noon{1'795'694'400 * second};  // the daemon's time in every test

inline Task task_of(std::string content) {
  Task task;
  task.task_id = "t1";
  task.content = std::move(content);
  task.actor = "coder";
  task.opened_at = Time{noon.micros - 2 * hour};
  return task;
}

inline Task authentication() { return task_of("Implement authentication module"); }

inline Piece piece_of(std::string text, std::string type = "test_output") {
  Piece piece;
  piece.evidence_id = "e1";
  piece.found = true;
  piece.type = std::move(type);
  piece.text = std::move(text);
  piece.actor = "coder";
  piece.recorded_at = Time{noon.micros - hour};
  return piece;
}

inline Piece piece_of_json(std::string json, std::string type = "code_review") {
  Piece piece = piece_of(json, std::move(type));
  piece.content = std::move(json);
  return piece;
}

inline constexpr std::string_view good_text =
    "tests/test_auth.py::test_login PASSED\ntests/test_auth.py::test_logout PASSED\n2 passed in 0.31s";
inline Piece good_piece() { return piece_of(std::string(good_text)); }

// A recorded run of pytest with three tests that passed.
inline Piece recorded_piece() {
  Piece piece = piece_of("3 passed in 0.05s");
  Command command;
  command.observed = true;
  command.argv = {"pytest", "tests/test_auth.py"};
  command.exit_code = 0;
  command.started_at = Time{noon.micros - hour - 5 * second};
  command.ended_at = Time{noon.micros - hour};
  reports::Report report;
  report.format = "pytest";
  report.counts = {3, 3, 0, 0};
  report.complete = true;
  command.report = report;
  piece.command = command;
  return piece;
}

inline Judgement judged(const Task& task, std::vector<Piece> pieces, const Policy& policy = {}) {
  return judge(task, pieces, policy, noon);
}
inline Judgement judged(const Piece& piece) { return judged(authentication(), {piece}); }

// Returns the code of the first finding that blocks; empty if none does.
inline std::string blocked_by(const Judgement& judgement) {
  for (const Finding& finding : judgement.findings) {
    if (finding.blocks) return std::string(finding.code);
  }
  return {};
}

inline bool has_finding(const Judgement& judgement, std::string_view code, bool blocks = true) {
  for (const Finding& finding : judgement.findings) {
    if (finding.code == code && finding.blocks == blocks) return true;
  }
  return false;
}

// Returns the code for a text that the agent states about the authentication module.
inline std::string code_of_text(std::string text) { return blocked_by(judged(piece_of(std::move(text)))); }

inline Policy strict_policy() {
  Policy policy;
  policy.strict = true;
  return policy;
}

}  // namespace muniment::evidence::completion
