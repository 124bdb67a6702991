// The script of `sh -c`, split at its operators. Nothing is expanded.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::evidence::completion {

inline constexpr std::size_t script_commands_max = 64;  // the rest of a longer script is not read

struct ScriptCommand {
  std::vector<std::string> words;  // unquoted; never empty
  std::string_view before;         // the operator in front: empty, ";", "&&", "||", "|", "&"
  std::string_view after;
};

struct ShellScript {
  std::vector<ScriptCommand> commands;
  bool redirects_output = false;  // standard output of a command goes elsewhere
  bool substitutes = false;       // has a substitution, a here document, or quoting that shells read differently
};

ShellScript read_script(std::string_view script);

// Whether the output and the exit status of the script are those of its last command: before it are only `cd`, `set`,
// `export` and assignments, and nothing is behind it. A script that cannot be decided by its text is not one command.
bool is_one_command(const ShellScript& script);

// NAME=value
bool is_assignment(std::string_view word);

}  // namespace muniment::evidence::completion
