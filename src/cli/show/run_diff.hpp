// Compares two runs: shared calls, by tool and arguments, and calls of only one run. A pure function.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"

namespace muniment::cli {

struct DiffCall {
  std::string name;       // name of the tool
  std::string arguments;  // canonical JSON, so that the order of members does not matter
  std::string call_id;
  std::string status;  // status of the result; empty: none
  std::string result;  // identifies the result
  std::int64_t run_seq = 0;
};

enum class DiffKind : std::uint8_t { same, only_first, only_second };

struct DiffStep {
  DiffKind kind = DiffKind::same;
  std::size_t first = 0;  // index in the first run's calls, if present there
  std::size_t second = 0;
};

// Computes the shortest edit script: E. W. Myers, "An O(ND) Difference Algorithm and Its Variations" (1986). Beyond
// `differences_max`, the unaligned rest is reported as removed and added.
std::vector<DiffStep> align(const std::vector<DiffCall>& first, const std::vector<DiffCall>& second,
                            std::size_t differences_max = 2000);

// Reports each difference of two values as a JSON pointer and both values ("" if absent); at most `limit`. Returns
// whether all differences were reported.
bool differing(const json::Value& first, const json::Value& second, std::size_t limit,
               const std::function<void(const std::string& path, std::string_view a, std::string_view b)>& tell);

}  // namespace muniment::cli
