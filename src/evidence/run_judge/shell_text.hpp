// A shell's command line, read far enough to know which programs it runs and which files it writes. Nothing is
// expanded.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::evidence::run_judge {

inline constexpr std::size_t shell_bytes_max = 64 << 10;  // the rest of a longer one is not read
inline constexpr std::size_t simple_commands_max = 64;
inline constexpr std::size_t words_max = 256;  // of a simple command

struct SimpleCommand {
  std::vector<std::string> words;    // unquoted; redirections are not among them
  std::vector<std::string> written;  // targets of > and >>
  bool piped = false;                // its output is the next command's input
  bool output_away = false;          // its standard output goes to a file
  // Whether the exit status of the whole line is its own: only && follows it.
  bool status_speaks = false;
};

std::vector<SimpleCommand> simple_commands(std::string_view line);

// The words of the program that is run in the end: without variables, sudo, timeout 10, poetry run, python -m …
std::vector<std::string> bare_words(const std::vector<std::string>& words);

}  // namespace muniment::evidence::run_judge
