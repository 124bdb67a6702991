// Exports a program's command line as JSON, from which the build generates manual pages and shell completion.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace muniment {

// Returns {name, text, options: [{names, positional, text, value, choices, bounds, default, required, many}], commands:
// […]} for the command and all its subcommands. Hidden ones are left out.
std::string command_tree(const CLI::App& app);

// Adds the option --command-tree, which prints the tree. The help does not list it.
void offer_command_tree(CLI::App& app);

}  // namespace muniment
