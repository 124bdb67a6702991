// Splits the script of `sh -c` at its operators. Nothing is expanded, and redirections are left out.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::evidence::completion {

inline constexpr std::size_t script_commands_max = 64;  // the rest of a longer script is ignored

struct ScriptCommand {
  std::vector<std::string> words;  // unquoted; never empty
  std::string_view before;         // the preceding operator: empty, ";", "&&", "||", "|", "&"
  std::string_view after;
};

struct ShellScript {
  std::vector<ScriptCommand> commands;
  bool redirects_output = false;  // the standard output of a command is redirected
  bool substitutes = false;       // contains a substitution, a here document, or quoting that shells read differently
  std::string expanded;           // the first word that a shell replaces: a variable, a pattern of names; empty: none
};

ShellScript read_script(std::string_view script);

// Returns whether the output and the exit status of the script are those of its last command: only `cd`, `set`,
// `export`, assignments and the activation of a virtual environment precede it. Returns false if the text alone does
// not determine this.
bool is_one_command(const ShellScript& script);

// Returns whether the word is the script that activates a virtual environment of Python.
bool is_activation(std::string_view word);

// Returns whether the word is NAME=value.
bool is_assignment(std::string_view word);

}  // namespace muniment::evidence::completion
