// The daemon's messages name methods, since programs ask it; who typed a command is told the command that does the same.
#pragma once

#include <string>
#include <string_view>

namespace muniment::cli {

// "… List them: artifact.list" → "… List them: muniment artifact list". What no command does stays as it is, and so do
// the names that the caller sent, wherever the message repeats them.
std::string with_commands(std::string_view message);

}  // namespace muniment::cli
