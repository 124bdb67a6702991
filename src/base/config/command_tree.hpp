// Exports a program's command line as JSON, from which the build generates manual pages and shell completion.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace muniment {

// Adds the option --command-tree, which prints {name, text, options: [{names, positional, text, value, choices, bounds,
// default, required, many}], commands: […]} for the command and all its subcommands. Hidden ones are left out. The help
// does not list the option. `others` returns the trees of programs whose commands replace those of the same name.
void offer_command_tree(CLI::App& app, std::function<std::vector<std::string>()> others = {});

}  // namespace muniment
