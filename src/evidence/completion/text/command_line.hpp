// Classifies a recorded command by its argument vector: a known test runner, a program that only prints, or an unknown
// program. Wrappers (env, timeout, sh -c, poetry run) are skipped.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/completion/runners.hpp"

namespace muniment::evidence::completion {

inline constexpr int wrappers_max = 8;  // nested wrappers; with more the program is unknown
inline constexpr std::size_t script_bytes_max = 16 * 1024;

enum class Program : std::uint8_t {
  runner,  // runs tests
  unknown,
  lister,   // a test runner that prints its version, its help or a list of its tests
  reader,   // displays stored data: cat, grep, ls, git show
  printer,  // prints its arguments or nothing: echo, printf, true
};

struct CommandKind {
  Program program = Program::unknown;
  std::string name;  // name of the classified program, as in the command
  bool masked =
      false;  // the exit status of the command is not that of the program: `pytest || true`, `pytest | tee log`
  bool mentions_runner = false;        // a word of the command is the name of a runner
  bool direct = true;                  // no other command of a script can have written its output or set its status
  bool is_module = false;              // the name is a module of Python
  const Runner* runner = nullptr;      // the row of the program; nullptr: none, or it runs no tests
  std::vector<std::string> arguments;  // of the classified program, if it runs tests
  Arguments read;                      // what the words of the whole line say; for one command that runs tests
  std::string environment;             // folder of programs that precedes those of PATH; empty: none
};

// `runners`: additional programs that run tests, by path, by base name, or with their first arguments ("make
// selftest").
CommandKind kind_of(std::span<const std::string> argv, std::span<const std::string> runners);

// Classifies a line in the syntax of a shell, like kind_of.
CommandKind kind_of_line(std::string_view line, std::span<const std::string> runners);

}  // namespace muniment::evidence::completion
