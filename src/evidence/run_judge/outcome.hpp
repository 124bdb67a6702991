// How a check ended, as its exit status and its output say. Output is the tool's text and may lie: a report in it and
// the exit status must agree.
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
  std::optional<reports::Counts> counts;  // of tests, where the output sums them up
};

// What a call or a command says of its end.
struct Ending {
  std::optional<std::int64_t> exit_code;
  bool failed = false;     // status error, denied, cancelled; a signal
  bool succeeded = false;  // status ok, of a tool whose status is not its exit code's
  bool cut_short = false;  // a time limit, an interruption
  bool output_lost = false;
  std::string_view output;
};

// The exit code that runtimes of agents write at the beginning or at the end of an output.
std::optional<std::int64_t> exit_code_in(std::string_view output);

// The counts of a test report in an output; nullopt: there is none.
std::optional<reports::Counts> test_counts_in(std::string_view output);

// Whether an output ends in an uncaught error: a traceback, a panic, "command not found".
bool shows_error(std::string_view output);

CheckEnd end_of(const CheckRun& run, const Ending& ending);

}  // namespace muniment::evidence::run_judge
