// A program's command line as JSON, for what is made of it when Muniment is built: manual pages and shell completion.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace muniment {

// {name, text, options: [{names, positional, text, value, choices, bounds, default, required, many}], commands: […]} of
// the command and all below it. Hidden ones are left out.
std::string command_tree(const CLI::App& app);

// Adds the option --command-tree, which prints it; no help mentions it.
void offer_command_tree(CLI::App& app);

}  // namespace muniment
