// Splits the script of a shell into simple commands: of `sh -c`, or the command line of an agent. Nothing is expanded.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::evidence::shell {

inline constexpr std::size_t script_commands_max = 64;  // the rest of a longer script is ignored
inline constexpr std::size_t command_words_max = 256;   // further words of a command are ignored

struct ScriptCommand {
  std::vector<std::string> words;    // unquoted, without redirections
  std::vector<std::string> written;  // targets of > and >>
  std::string_view before;           // the preceding operator: empty, ";", "&&", "||", "|", "&"
  std::string_view after;
  bool output_away = false;  // its standard output is redirected to a file
};

struct ShellScript {
  std::vector<ScriptCommand> commands;
  bool redirects_output = false;  // the standard output of a command is redirected, also to another descriptor
  bool substitutes = false;       // contains a substitution, a here document, a subshell, or quoting that shells read
                                  // differently, or was not read to its end
  std::string expanded;           // the first word that a shell replaces: a variable, a pattern of names; empty: none
};

ShellScript read_script(std::string_view script);

// Returns whether the exit status of the script is that of this command: only && follows it.
bool status_speaks(std::span<const ScriptCommand> commands, std::size_t at);

// Returns whether the output and the exit status of the script are those of its last command: only `cd`, `set`,
// `export`, assignments and the activation of a virtual environment precede it. Returns false if the text alone does
// not determine this.
bool is_one_command(const ShellScript& script);

// Returns whether the word is the script that activates a virtual environment of Python.
bool is_activation(std::string_view word);

// Returns whether the word is NAME=value.
bool is_assignment(std::string_view word);

}  // namespace muniment::evidence::shell
