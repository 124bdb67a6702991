// Holds one example per command, which its help and its usage errors show.
#pragma once

#include <string_view>

namespace CLI {  // NOLINT: name of the library
class App;
}

namespace muniment::cli {

// Returns the example of the command with this path, such as "run list"; empty if there is no such command.
std::string_view example_of(std::string_view path);

// Appends the example of every command below `app` to its help.
void add_examples(CLI::App& app);

}  // namespace muniment::cli
