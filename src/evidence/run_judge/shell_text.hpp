// Parses a shell command line to find the programs that it runs and the files that it writes. Nothing is expanded.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::evidence::run_judge {

inline constexpr std::size_t shell_bytes_max = 64 << 10;  // the rest of a longer line is ignored
inline constexpr std::size_t simple_commands_max = 64;
inline constexpr std::size_t words_max = 256;  // words of a simple command

struct SimpleCommand {
  std::vector<std::string> words;    // unquoted, without redirections
  std::vector<std::string> written;  // targets of > and >>
  bool piped = false;                // its output is the input of the next command
  bool output_away = false;          // its standard output is redirected to a file
  // The exit status of the whole line is that of this command: only && follows it.
  bool status_speaks = false;
};

std::vector<SimpleCommand> simple_commands(std::string_view line);

// Returns the words of the program that finally runs: without variables, sudo, timeout 10, poetry run, python -m …
std::vector<std::string> bare_words(const std::vector<std::string>& words);

}  // namespace muniment::evidence::run_judge
