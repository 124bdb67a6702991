#include "cli/bead/bd_issue.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json/json.hpp"
#include "base/utf8.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t id_bytes_max = 256;  // that of a task's id

Error not_issues(std::string_view command, std::string_view problem) {
  return Error(
      Errc::conflict,
      fmt::format("{} printed no issue that Muniment can read: {}. Check its version: bd version", command, problem));
}

Result<BdIssue> issue_of(const json::Value& value, std::string_view command) {
  const auto id = value["id"].as_string();
  const auto title = value["title"].as_string();
  const auto status = value["status"].as_string();
  if (!id || !title || !status) return not_issues(command, "expected an object with the texts id, title and status");
  if (const Status good = check_issue_id(*id); !good) return not_issues(command, good.error().message);
  BdIssue issue{*id, *title, *status, value["closed_at"].string_or(""), false};
  issue.marked = value["metadata"][bead_metadata_key].present();
  return issue;
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

Result<std::vector<BdIssue>> parse_issues(std::string_view output, std::string_view command) {
  const auto document = json::parse(output);
  if (!document) return not_issues(command, document.error().message);
  json::Value root = document->root();
  if (root.is(json::Kind::object) && root["schema_version"] && root["data"]) root = root["data"];
  std::vector<BdIssue> issues;
  if (root.is(json::Kind::object)) {
    ASSIGN_OR_RETURN(BdIssue only, issue_of(root, command));
    issues.push_back(std::move(only));
    return issues;
  }
  if (root.is(json::Kind::null)) return issues;
  if (!root.is(json::Kind::array)) return not_issues(command, "expected an array or an object");
  for (const json::Value value : root) {
    ASSIGN_OR_RETURN(BdIssue issue, issue_of(value, command));
    issues.push_back(std::move(issue));
  }
  return issues;
}

Result<BdIssue> parse_issue(std::string_view output, std::string_view command) {
  ASSIGN_OR_RETURN(std::vector<BdIssue> issues, parse_issues(output, command));
  if (issues.size() == 1) return std::move(issues.front());
  return not_issues(command, fmt::format("expected one issue, got {}", issues.size()));
}

}  // namespace muniment::cli
