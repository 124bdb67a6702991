// Kinds of lines in the output of tools: a runner's frame, the outcome of a test, a build's step, an item, a command.
#pragma once

#include <string_view>

namespace muniment::evidence::completion {

bool is_frame(std::string_view line);
bool is_status_line(std::string_view line);
bool is_build_step(std::string_view line);
bool begins_item(std::string_view line);
bool names_command(std::string_view line);
bool is_typed(std::string_view line);

}  // namespace muniment::evidence::completion
