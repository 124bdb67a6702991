// Extracts the tool, the changed file and the working directory from the text of a SWE-agent action and its
// observation. Facts that the trace does not show are not guessed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json/json.hpp"

namespace muniment::cli {

// Returns the first word of an action; "unknown" for an empty one.
std::string tool_of(std::string_view action);

// Returns whether this is one of the agent's own commands (open, edit, search_dir …) and not a shell command.
bool is_own_tool(std::string_view tool);

// Returns the status shown by the observation: ok, error, timeout or unknown. Shell commands show no exit status.
std::string_view tool_status(std::string_view tool, std::string_view observation);

struct AgentPlace {
  std::string open_file;
  std::string working_dir;
  bool operator==(const AgentPlace&) const = default;
};

// Returns the open file and the working directory that `state` records: an object, or the text of one. Both are empty
// for any other value.
AgentPlace place_of(const json::Value& state);

struct FileChange {
  std::string path;
  std::string change;  // "created" or "modified"
};

// Returns the file that a successful `create`, `edit`, `insert` or `str_replace_editor` changed, as named in its
// result. If the result names no file, returns `open_file`.
std::optional<FileChange> file_change(std::string_view tool, std::string_view observation, std::string_view open_file);

}  // namespace muniment::cli
