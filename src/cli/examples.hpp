// One example of each command, for its help and for a command line that is wrong.
#pragma once

#include <string_view>

namespace CLI {
class App;
}

namespace muniment::cli {

// An example of the command with this path, "run list"; empty where there is no such command.
std::string_view example_of(std::string_view path);

// Ends the help of every command below `app` with its example.
void add_examples(CLI::App& app);

}  // namespace muniment::cli
