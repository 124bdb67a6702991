// Determines how a check ended from its exit status and its output. Output is untrusted: a report in it must agree with
// the exit status.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "evidence/reports/report.hpp"
#include "evidence/run_judge/checks.hpp"

namespace muniment::evidence::run_judge {

enum class Outcome : std::uint8_t { passed, failed, unknown, no_tests };

struct CheckEnd {
  Outcome outcome = Outcome::unknown;
  std::optional<reports::Counts> counts;  // counts of tests, if the output has a summary
};

// The recorded end of a call or a command.
struct Ending {
  std::optional<std::int64_t> exit_code;
  bool failed = false;     // status error, denied or cancelled; a signal
  bool succeeded = false;  // status ok of a tool whose status does not depend on an exit code
  bool cut_short = false;  // ended by a time limit or an interruption
  bool output_lost = false;
  std::string_view output;
  std::optional<reports::Counts> counts = {};  // of a result in JSON
};

// Returns the exit code that agent runtimes write at the beginning or at the end of an output.
std::optional<std::int64_t> exit_code_in(std::string_view output);

// Returns the counts of a test report in an output; nullopt if it has no report.
std::optional<reports::Counts> test_counts_in(std::string_view output);

// Returns whether an output ends in an uncaught error: a traceback, a panic, "command not found".
bool shows_error(std::string_view output);

CheckEnd end_of(const CheckRun& run, const Ending& ending);

}  // namespace muniment::evidence::run_judge
