#include "cli/import/swe_agent_action.hpp"

#include <algorithm>
#include <iterator>

#include "base/json.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace {

constexpr std::string_view own_tools[] = {
    "close",     "create", "edit",        "exit_cost", "find_file", "goto",
    "open",      "scroll_down", "scroll_up", "search_dir", "search_file", "submit",
};

constexpr std::string_view failures[] = {
    "Your proposed edit has introduced new syntax error(s).",
    "EXECUTION TIMED OUT",
    "Usage: ",
    "No file open.",
};

// The path in "[File: /x/y.py (48 lines total)]", with which a file is shown.
std::string shown_path(std::string_view observation) {
  constexpr std::string_view opening = "[File: ";
  const std::size_t begin = observation.find(opening);
  if (begin == std::string_view::npos) return {};
  const std::string_view rest = observation.substr(begin + opening.size());
  return std::string(rest.substr(0, rest.find(" (")));
}

}  // namespace

std::string tool_of(std::string_view action) {
  constexpr std::size_t name_bytes_max = 64;
  const std::size_t begin = action.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return "none";
  action.remove_prefix(begin);
  return preview(action.substr(0, action.find_first_of(" \t\r\n")), name_bytes_max);
}

bool is_own_tool(std::string_view tool) {
  return std::find(std::begin(own_tools), std::end(own_tools), tool) != std::end(own_tools);
}

bool looks_failed(std::string_view observation) {
  for (const std::string_view failure : failures) {
    if (observation.starts_with(failure)) return true;
  }
  return observation.starts_with("/bin/bash: ") && observation.find("command not found") != std::string_view::npos;
}

AgentPlace place_of(const std::string& state) {
  const auto document = json::parse(state);
  if (!document) return {};
  return {document->root()["open_file"].string_or(""), document->root()["working_dir"].string_or("")};
}

std::optional<FileChange> file_change(std::string_view action, std::string_view observation) {
  const std::string tool = tool_of(action);
  if ((tool != "create" && tool != "edit") || looks_failed(observation)) return std::nullopt;
  std::string path = shown_path(observation);
  if (path.empty()) return std::nullopt;
  return FileChange{std::move(path), tool == "create" ? "created" : "modified"};
}

}  // namespace muniment::cli
