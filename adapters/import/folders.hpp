// Finds trace files below folders, and the folders in which known agents leave their sessions.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace muniment::cli {

struct TraceWalk {
  // Called for what is left out: a link, a socket, an unreadable folder or file. May be empty.
  std::function<void(std::string_view path, std::string_view why)> skipped = {};
  // Called for each open folder before it is read; an error ends the walk. May be empty.
  std::function<Status(int folder, const std::string& path)> entered = {};
};

// Appends the files below a folder whose extension a trace may have, in the order of their names. Links are not
// followed, so that a loop of them does no harm. Errors: those of `entered`.
Status find_traces(const std::string& folder, const TraceWalk& walk, std::vector<std::string>& found);

// Returns the existing folders of Claude Code, Codex and Gemini CLI: those below `home`, or those that the variables
// CLAUDE_CONFIG_DIR and CODEX_HOME name.
std::vector<std::string> agent_folders(const std::string& home);

}  // namespace muniment::cli
