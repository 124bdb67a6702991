// What the text of a SWE-agent action and its observation show: the tool, the file that it
// changed, where the agent stands. Nothing is guessed that the trace does not show.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muniment::cli {

// The first word of an action; "unknown" for an empty one.
std::string tool_of(std::string_view action);

// One of the agent's own commands (open, edit, search_dir …); anything else is a shell command.
bool is_own_tool(std::string_view tool);

// How the call ended, as far as the observation says it: ok, error, timeout; else unknown. Shell commands show no exit
// status.
std::string_view tool_status(std::string_view tool, std::string_view observation);

struct AgentPlace {
  std::string open_file;
  std::string working_dir;
  bool operator==(const AgentPlace&) const = default;
};

// From the entry's state, the text of a JSON object; empty where it is not one.
AgentPlace place_of(const std::string& state);

struct FileChange {
  std::string path;
  std::string change;  // created, modified
};

// For `create` and `edit` that worked: they answer with the file as it is then.
std::optional<FileChange> file_change(std::string_view action, std::string_view observation);

}  // namespace muniment::cli
