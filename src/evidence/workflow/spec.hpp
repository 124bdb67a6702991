// The specification of a blind workflow: three commands, their limits, and the pairs of files to compare. Pure: paths
// are checked for their form only; docs/evidence.md describes the file for users.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace muniment::evidence::workflow {

inline constexpr std::size_t spec_bytes_max = 1 << 20;
inline constexpr std::size_t pairs_max = 64;
inline constexpr std::size_t name_bytes_max = 128;  // path of a golden file, an output or a file of the specification
inline constexpr std::size_t task_bytes_max = 16 * 1024;
inline constexpr std::string_view standard_output = "stdout";  // in [compare]: the tester's standard output

struct StepLimits {
  std::int64_t seconds = 600;
  std::int64_t output_bytes = 64 << 20;             // standard output and standard error together
  std::int64_t disk_bytes = std::int64_t{1} << 30;  // files that the step writes
  std::int64_t memory_bytes = std::int64_t{2} << 30;
};

struct Step {
  std::vector<std::string> command;  // program and arguments
  std::vector<std::string> reads;    // further files and folders that a confined command can read
  StepLimits limits;
};

struct Pair {
  std::string golden;  // path in the folder of golden files
  std::string output;  // path in the tester's folder, or standard_output
};

struct Spec {
  std::string task;
  Step spec_writer, coder, tester;
  std::string start;                     // folder that is copied into the coder's folder; empty: none
  bool network = false;                  // the coder may use the network
  std::string isolation = "full";        // lowest accepted isolation of coder and tester
  std::vector<std::string> environment;  // names of variables that all three commands receive
  std::vector<Pair> compare;
};

// Parses the text of a TOML file. A given `task` replaces the member task, which may then be absent. Errors:
// invalid_argument with the line, the member and, for an unknown one, the nearest known name; too_large.
Result<Spec> parse_spec(std::string_view toml, std::string_view task = {});

// Returns whether a variable is never passed on, even if the specification lists it: its name begins with GOLDEN,
// MUNIMENT or LD_.
bool is_withheld(std::string_view variable);

}  // namespace muniment::evidence::workflow
