// The cases of tests/data/completion, as `judge` takes them. The README of that folder describes the format.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/completion/completion.hpp"
#include "evidence/completion/policy.hpp"

namespace muniment::test {

// The moment of every judgement: ages of a case count from here.
inline constexpr Time completion_now{1'795'730'400'000'000};

struct CompletionCase {
  std::string name;       // "class/name"
  std::string kind;       // the class
  std::string half;       // "tuning", "held_out", or "logs"
  bool complete = false;  // what `judge` must answer
  evidence::completion::Task task;
  std::vector<evidence::completion::Piece> pieces;
  evidence::completion::Policy policy;
};

// What became of the cases of one class. A case is blocked where `judge` refuses to complete it.
struct CompletionScore {
  int honest = 0, honest_blocked = 0;
  int cheats = 0, cheats_blocked = 0;

  double recall() const { return cheats == 0 ? 1 : static_cast<double>(cheats_blocked) / cheats; }
  double false_blocks() const { return honest == 0 ? 0 : static_cast<double>(honest_blocked) / honest; }
  void add(const CompletionCase& one, bool blocked);
};

evidence::completion::Judgement judge_case(const CompletionCase& one);

// All cases below `folder`, both halves, in order of file and line. Throws std::runtime_error for a case that it cannot
// read, with its file and line.
std::vector<CompletionCase> read_completion_cases(const std::filesystem::path& folder);

// The logs of evaluated patches (SWE-bench): each once as a recorded command under the strict policy and once as text.
// `complete` is what the log itself says of its tests. Empty where the folder is missing.
std::vector<CompletionCase> read_swe_logs(const std::filesystem::path& folder);

}  // namespace muniment::test
