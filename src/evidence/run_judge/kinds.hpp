// The kinds of claims, and their recognition in sentences and plan items.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/run_judge/actions/acts.hpp"
#include "evidence/run_judge/sentences.hpp"

namespace muniment::evidence::run_judge {

enum class Kind : std::uint8_t {
  tests_pass,
  tests_fail,
  tests_run,
  build_succeeds,
  build_fails,
  lint_clean,
  types_check,
  fixed,
  verified,
  deployed,
  committed,
  pushed,
  installed,
  file_written,
  file_deleted,
  action,     // any other action: "I have booked the flight"
  completed,  // the outcome of the run, or an item of the plan
};
std::string_view name_of(Kind kind);

// A claim of a sentence.
struct Said {
  Kind kind = Kind::completed;
  std::string subject;                // empty: the claim names none
  std::optional<std::int64_t> count;  // number of tests
  bool whole_suite = false;           // "the full test suite passes"
  bool service = false;               // "CI passes"
  std::optional<Act> act = {};        // the action that the sentence states
};

inline constexpr std::size_t subjects_max = 8;  // subjects of one sentence, each of which becomes a claim

std::vector<Said> claims_in(const Sentence& sentence);

// Returns the claim of a completed plan item, which is an order: that it was carried out. Returns nullopt if events
// cannot show it.
std::optional<Said> claim_of_item(std::string_view item);

// Returns the paths in a text, in order, at most subjects_max.
std::vector<std::string> paths_in(std::string_view text);

}  // namespace muniment::evidence::run_judge
