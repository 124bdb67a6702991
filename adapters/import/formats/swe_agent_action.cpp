#include "adapters/import/formats/swe_agent_action.hpp"

#include <algorithm>
#include <iterator>
#include <span>

#include "adapters/import/source.hpp"
#include "base/json/json.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace {

constexpr std::string_view own_tools[] = {
    "close",  "create", "edit",        "exit_cost", "exit_forfeit", "filemap",     "find_file",          "goto",
    "insert", "open",   "scroll_down", "scroll_up", "search_dir",   "search_file", "str_replace_editor", "submit",
};

// Prefixes of results of the agent's own commands that failed and that succeeded.
constexpr std::string_view failures[] = {
    "Your proposed edit has introduced new syntax error(s).",
    "\nYour proposed edit has introduced new syntax error(s).",
    "Your edit was not applied",
    "Your search and replace strings are the same.",
    "Usage: ",
    "No file open",
    "No replacement was performed",
    "File already exists at: ",
    "The path ",
    "The parent directory ",
    "Invalid `",
    "Parameter `",
    "Unrecognized command ",
    "No edit history found for ",
    "Ran into ",
};
constexpr std::string_view successes[] = {
    "[File: ",         "Found ",      "No matches found", "File updated. ",
    "Text replaced. ", "Replaced ",   "Edit successful.", "File created successfully at: ",
    "Last edit to ",   "Here's the ",
};
constexpr std::string_view edited = " has been edited. ";
constexpr std::string_view timed_out = "EXECUTION TIMED OUT";
constexpr std::string_view cancelled = "was cancelled because it took more than ";
constexpr std::string_view not_executed = "Your bash command contained syntax errors and was NOT executed.";

bool begins_with_one_of(std::string_view text, std::span<const std::string_view> beginnings) {
  return std::ranges::any_of(beginnings, [&](std::string_view beginning) { return text.starts_with(beginning); });
}

// Returns the text between two others; the first one begins the observation.
std::string between(std::string_view text, std::string_view opening, std::string_view closing) {
  if (!text.starts_with(opening)) return {};
  const std::string_view rest = text.substr(opening.size());
  const std::size_t end = rest.find(closing);
  return end == std::string_view::npos ? std::string() : std::string(rest.substr(0, end));
}

// Returns the path in "[File: /x/y.py (48 lines total)]", the heading of a displayed file.
std::string shown_path(std::string_view observation) {
  constexpr std::string_view opening = "[File: ";
  const std::size_t begin = observation.find(opening);
  if (begin == std::string_view::npos) return {};
  const std::string_view rest = observation.substr(begin + opening.size());
  return std::string(rest.substr(0, rest.find(" (")));
}

// The changes of str_replace_editor: a view changes nothing, and a failed edit has another text.
std::optional<FileChange> editor_change(std::string_view observation) {
  constexpr std::string_view created = "File created successfully at: ";
  if (observation.starts_with(created)) {
    const std::string_view rest = observation.substr(created.size());
    return FileChange{std::string(rest.substr(0, rest.find_first_of("\r\n"))), "created"};
  }
  std::string path = between(observation, "The file ", edited);
  if (path.empty()) path = between(observation, "Last edit to ", " undone successfully.");
  if (path.empty()) return std::nullopt;
  return FileChange{std::move(path), "modified"};
}

bool is_timeout(std::string_view observation) {
  constexpr std::string_view opening = "The command '", warning = "<warning>\n";
  if (observation.starts_with(timed_out)) return true;
  if (observation.starts_with(warning)) observation.remove_prefix(warning.size());
  return observation.starts_with(opening) && observation.find(cancelled) != std::string_view::npos;
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
  if (is_timeout(observation)) return "timeout";
  if (observation.starts_with(not_executed)) return "error";
  if (observation.starts_with("/bin/bash: ") && observation.find("command not found") != std::string_view::npos)
    return "error";
  if (!is_own_tool(tool)) return unknown_end;
  if (begins_with_one_of(observation, failures)) return "error";
  const bool is_edit = observation.starts_with("The file ") && observation.find(edited) != std::string_view::npos;
  return is_edit || begins_with_one_of(observation, successes) ? "ok" : unknown_end;
}

AgentPlace place_of(const json::Value& state) {
  if (const auto text = state.as_string()) {
    const auto document = json::parse(std::string_view(*text));
    return document && document->root().is(json::Kind::object) ? place_of(document->root()) : AgentPlace{};
  }
  return {state["open_file"].string_or(""), state["working_dir"].string_or("")};
}

std::optional<FileChange> file_change(std::string_view tool, std::string_view observation, std::string_view open_file) {
  if (tool == "str_replace_editor") return editor_change(observation);
  const bool is_edit = tool == "edit" || tool == "insert";
  if ((tool != "create" && !is_edit) || tool_status(tool, observation) != "ok") return std::nullopt;
  std::string path = shown_path(observation);
  if (path.empty() && is_edit && open_file != "n/a") path = open_file;
  if (path.empty()) return std::nullopt;
  return FileChange{std::move(path), is_edit ? "modified" : "created"};
}

}  // namespace muniment::cli
