#include "cli/bead/bd_issue.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json/json.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t id_bytes_max = 256;  // that of a task's id
constexpr std::size_t shown_bytes = 80;

Error not_issues(std::string_view command, std::string_view problem) {
  if (problem.ends_with('.')) problem.remove_suffix(1);
  return Error(
      Errc::conflict,
      fmt::format("{} printed no issue that Muniment can read: {}. Check its version: bd version", command, problem));
}

Result<BdIssue> issue_of(const json::Value& value, std::string_view command) {
  const auto id = value["id"].as_string();
  const auto title = value["title"].as_string();
  const auto status = value["status"].as_string();
  if (!id || !title || !status) return not_issues(command, "expected an object with the texts id, title and status");
  if (const Status good = check_issue_id(*id); !good)
    return not_issues(command, fmt::format("{} is no id of an issue", json::quote(preview(*id, shown_bytes))));
  BdIssue issue{*id, *title, *status, value["closed_at"].string_or(""), false};
  issue.marked = value["metadata"][bead_metadata_key].present();
  return issue;
}

// Names an element that is not valid JSON by its beginning, which has the id.
Error unreadable(std::string_view element, std::string_view problem) {
  element.remove_prefix(std::min(element.find_first_not_of(" \t\r\n"), element.size()));
  return {Errc::conflict, fmt::format("an issue of bd cannot be read: {}: {}", problem, preview(element, shown_bytes))};
}

// Returns the elements of the array that the text, or the member data of its envelope, is, although the text is not
// valid JSON as a whole; none if there is no such array or it is not closed.
std::vector<std::string_view> elements_of_array(std::string_view text) {
  std::vector<std::string_view> elements;
  const auto behind = [&](std::size_t from) { return std::min(text.find_first_not_of(" \t\r\n:", from), text.size()); };
  std::size_t array = behind(0);
  const std::size_t data = text.find("\"data\"");
  if (array < text.size() && text[array] == '{' && data != std::string_view::npos) array = behind(data + 6);
  if (array == text.size() || text[array] != '[') return elements;
  std::size_t begin = array + 1, depth = 1;
  for (std::size_t at = begin; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\' ? 1U : 0U;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if ((c == ']' || c == '}') && --depth == 0) {
      elements.push_back(text.substr(begin, at - begin));
      return elements;
    } else if (c == ',' && depth == 1) {
      elements.push_back(text.substr(begin, at - begin));
      begin = at + 1;
    }
  }
  return {};
}

}  // namespace

Status check_issue_id(std::string_view id) {
  const bool word = std::ranges::all_of(id, [](char c) { return c > ' ' && c < '\x7f'; });
  if (!id.empty() && id.size() <= id_bytes_max && word && !id.starts_with('-')) return success();
  return Error(Errc::invalid_argument,
               fmt::format("expected the id of an issue, such as bd-a1b2: 1 to {} printable ASCII characters without "
                           "blanks and without a leading -",
                           id_bytes_max));
}

Result<BdIssues> parse_issues(std::string_view output, std::string_view command) {
  BdIssues read;
  const auto take = [&](Result<BdIssue> issue) {
    if (issue) {
      read.issues.push_back(std::move(*issue));
    } else {
      read.problems.push_back(issue.error().message);
    }
  };
  const auto document = json::parse(output);
  if (!document) {
    const std::vector<std::string_view> elements = elements_of_array(output);
    if (elements.empty()) return not_issues(command, document.error().message);
    for (const std::string_view element : elements) {
      const auto parsed = json::parse(element);
      take(parsed ? issue_of(parsed->root(), command) : Result<BdIssue>(unreadable(element, parsed.error().message)));
    }
    return read;
  }
  json::Value root = document->root();
  if (root.is(json::Kind::object) && root["schema_version"] && root["data"]) root = root["data"];
  if (root.is(json::Kind::object)) {
    ASSIGN_OR_RETURN(BdIssue only, issue_of(root, command));
    read.issues.push_back(std::move(only));
  } else if (root.is(json::Kind::array)) {
    for (const json::Value value : root) take(issue_of(value, command));
  } else if (!root.is(json::Kind::null)) {
    return not_issues(command, "expected an array or an object");
  }
  return read;
}

Result<BdIssue> parse_issue(std::string_view output, std::string_view command) {
  ASSIGN_OR_RETURN(BdIssues read, parse_issues(output, command));
  if (!read.problems.empty()) return Error(Errc::conflict, read.problems.front());
  if (read.issues.size() == 1) return std::move(read.issues.front());
  return not_issues(command, fmt::format("expected one issue, got {}", read.issues.size()));
}

}  // namespace muniment::cli
