// What a recorded command ran, from its argument vector: a known test runner, a program that only prints, or a program
// that nothing is known about. Wrappers (env, timeout, sh -c, poetry run) are looked through.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::evidence::completion {

inline constexpr int wrappers_max = 8;  // nested; beyond it the program is unknown
inline constexpr std::size_t script_bytes_max = 16 * 1024;

enum class Program : std::uint8_t {
  runner,  // runs tests
  unknown,
  lister,   // a test runner that is asked for its version, its help or a list of its tests
  reader,   // shows what is stored somewhere: cat, grep, ls, git show
  printer,  // prints what it is told, or nothing: echo, printf, true
};

struct CommandKind {
  Program program = Program::unknown;
  std::string name;              // of the program that counts, as it was called
  bool masked = false;           // its exit status is not the command's: `pytest || true`, `pytest | tee log`
  bool mentions_runner = false;  // a word of the command is the name of a runner
  bool direct = true;            // no other command of a script can have written its output or set its status
};

// `runners`: further programs that run tests, by path, by base name or with their first arguments ("make selftest").
CommandKind kind_of(std::span<const std::string> argv, std::span<const std::string> runners);

// The same of a line that a shell would read.
CommandKind kind_of_line(std::string_view line, std::span<const std::string> runners);

}  // namespace muniment::evidence::completion
