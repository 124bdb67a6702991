// Two runs side by side: which calls they share, by tool and arguments, and which only one of them made. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"

namespace muniment::cli {

struct DiffCall {
  std::string name;       // the tool's
  std::string arguments;  // canonical JSON, so that the order of members does not tell
  std::string call_id;
  std::string status;  // of its result; empty: none
  std::string result;  // what tells one result from another
  std::int64_t run_seq = 0;
};

enum class DiffKind : std::uint8_t { same, only_first, only_second };

struct DiffStep {
  DiffKind kind = DiffKind::same;
  std::size_t first = 0;  // index in the first run's calls, where it has one
  std::size_t second = 0;
};

// The shortest script from one to the other: E. W. Myers, "An O(ND) Difference Algorithm and Its Variations" (1986).
// Beyond `differences_max` what has not been aligned is told as removed and added.
std::vector<DiffStep> align(const std::vector<DiffCall>& first, const std::vector<DiffCall>& second,
                            std::size_t differences_max = 2000);

// Each place where two values differ, as a JSON pointer, and both sources ("" where it is not there); at most `limit`.
// Answers whether that were all.
bool differing(const json::Value& first, const json::Value& second, std::size_t limit,
               const std::function<void(const std::string& path, std::string_view a, std::string_view b)>& tell);

}  // namespace muniment::cli
