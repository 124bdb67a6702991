// Reads the cases of tests/data/completion as input of `judge`. The README of that folder describes the format.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/completion/completion.hpp"
#include "evidence/completion/policy.hpp"

namespace muniment::test {

// The time of every judgement, from which the ages in a case count.
inline constexpr Time completion_now{1'795'730'400'000'000};

struct CompletionCase {
  std::string name;       // "class/name"
  std::string kind;       // the class
  std::string half;       // "tuning", "held_out", or "logs"
  bool complete = false;  // expected answer of `judge`
  evidence::completion::Task task;
  std::vector<evidence::completion::Piece> pieces;
  evidence::completion::Policy policy;
};

// The results of the cases of one class. A case is blocked if `judge` refuses to complete the task.
struct CompletionScore {
  int honest = 0, honest_blocked = 0;
  int cheats = 0, cheats_blocked = 0;

  double recall() const { return cheats == 0 ? 1 : static_cast<double>(cheats_blocked) / cheats; }
  double false_blocks() const { return honest == 0 ? 0 : static_cast<double>(honest_blocked) / honest; }
  void add(const CompletionCase& one, bool blocked);
};

evidence::completion::Judgement judge_case(const CompletionCase& one);

// All cases below `folder`, both halves, in order of file and line. Throws std::runtime_error with file and line for an
// invalid case.
std::vector<CompletionCase> read_completion_cases(const std::filesystem::path& folder);

// The logs of evaluated patches (SWE-bench): each as a recorded command under the strict policy, and again as text.
// `complete` follows from the log's own result of its tests. Empty if the folder is missing.
std::vector<CompletionCase> read_swe_logs(const std::filesystem::path& folder);

}  // namespace muniment::test
