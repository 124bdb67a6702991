#include "cli/import/formats/swe_agent_action.hpp"

#include <algorithm>
#include <iterator>
#include <span>

#include "base/json/json.hpp"
#include "base/text.hpp"
#include "cli/import/source.hpp"

namespace muniment::cli {
namespace {

constexpr std::string_view own_tools[] = {
    "close", "create",      "edit",      "exit_cost",  "find_file",   "goto",
    "open",  "scroll_down", "scroll_up", "search_dir", "search_file", "submit",
};

// Prefixes of results of the agent's own commands that failed and that succeeded.
constexpr std::string_view failures[] = {"Your proposed edit has introduced new syntax error(s).",
                                         "Usage: ", "No file open."};
constexpr std::string_view successes[] = {"[File: ", "Found ", "No matches found"};
constexpr std::string_view timed_out = "EXECUTION TIMED OUT";

bool begins_with_one_of(std::string_view text, std::span<const std::string_view> beginnings) {
  return std::ranges::any_of(beginnings, [&](std::string_view beginning) { return text.starts_with(beginning); });
}

// Returns the path in "[File: /x/y.py (48 lines total)]", the heading of a displayed file.
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
  if (begin == std::string_view::npos) return "unknown";
  action.remove_prefix(begin);
  return preview(action.substr(0, action.find_first_of(" \t\r\n")), name_bytes_max);
}

bool is_own_tool(std::string_view tool) {
  return std::find(std::begin(own_tools), std::end(own_tools), tool) != std::end(own_tools);
}

std::string_view tool_status(std::string_view tool, std::string_view observation) {
  if (observation.starts_with(timed_out)) return "timeout";
  if (observation.starts_with("/bin/bash: ") && observation.find("command not found") != std::string_view::npos)
    return "error";
  if (!is_own_tool(tool)) return unknown_end;
  return begins_with_one_of(observation, failures)    ? "error"
         : begins_with_one_of(observation, successes) ? "ok"
                                                      : unknown_end;
}

AgentPlace place_of(const std::string& state) {
  const auto document = json::parse(state);
  if (!document) return {};
  return {document->root()["open_file"].string_or(""), document->root()["working_dir"].string_or("")};
}

std::optional<FileChange> file_change(std::string_view action, std::string_view observation) {
  const std::string tool = tool_of(action);
  if ((tool != "create" && tool != "edit") || tool_status(tool, observation) != "ok") return std::nullopt;
  std::string path = shown_path(observation);
  if (path.empty()) return std::nullopt;
  return FileChange{std::move(path), tool == "create" ? "created" : "modified"};
}

}  // namespace muniment::cli
