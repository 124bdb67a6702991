// Reads the issues that bd prints with --json: an array, one object, or either in the member data of an envelope
// (BD_JSON_ENVELOPE=1). The member metadata.muniment marks issues to which Muniment attached evidence.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace muniment::cli {

struct BdIssue {
  std::string id;
  std::string title;
  std::string status;     // open, in_progress, closed …
  std::string closed_at;  // empty: not closed
  bool marked = false;    // has metadata of Muniment

  bool closed() const { return status == "closed"; }
};

// Key of an issue's metadata.
inline constexpr std::string_view bead_metadata_key = "muniment";

// Refuses ids that bd would read as an option, or that are not one printable word. Errors: invalid_argument.
Status check_issue_id(std::string_view id);

struct BdIssues {
  std::vector<BdIssue> issues;
  std::vector<std::string> problems;  // one text for each element that is not an issue
};

// Returns the issues in the output of `command`, such as "bd list". Each element of an array is read by itself, so that
// one that cannot be read hides no other. Errors: conflict if the output is not JSON or not issues.
Result<BdIssues> parse_issues(std::string_view output, std::string_view command);
// Returns the only issue. Errors: also conflict if there are none or several.
Result<BdIssue> parse_issue(std::string_view output, std::string_view command);

}  // namespace muniment::cli
