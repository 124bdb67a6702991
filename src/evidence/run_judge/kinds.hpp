// The kinds of claims, and how a sentence makes one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
  completed,  // the outcome of the run, an item of the plan
};
std::string_view name_of(Kind kind);

// What a sentence claims.
struct Said {
  Kind kind = Kind::completed;
  std::string subject;                // empty: none is named
  std::optional<std::int64_t> count;  // of tests
  bool whole_suite = false;           // "the full test suite passes"
};

inline constexpr std::size_t subjects_max = 8;  // of a sentence, each a claim

std::vector<Said> claims_in(const Sentence& sentence);

// An item of a plan is an order: done, it claims what it orders. nullopt: nothing that events can show.
std::optional<Said> claim_of_item(std::string_view item);

// Paths that a text names, in order, at most subjects_max.
std::vector<std::string> paths_in(std::string_view text);

}  // namespace muniment::evidence::run_judge
