// Reads the changed lines of a unified diff of one file.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace muniment::cli {

// The changed lines between two lines of context, without their signs.
struct Hunk {
  std::vector<std::string_view> removed, added;
};

// Calls `use` with each hunk of a diff without lines of context. The views are valid as long as the diff.
template <typename Use>
void each_hunk(std::string_view diff, Use&& use) {
  bool in_hunk = false;
  Hunk hunk;
  const auto end_hunk = [&] {
    if (!hunk.removed.empty() || !hunk.added.empty()) use(hunk);
    hunk = {};
  };
  while (!diff.empty()) {
    const std::size_t end = std::min(diff.find('\n'), diff.size());
    const std::string_view line = diff.substr(0, end);
    diff.remove_prefix(std::min(end + 1, diff.size()));
    if (line.starts_with("@@") || line.starts_with("diff --git ")) {
      end_hunk();
      in_hunk = line.starts_with("@@");
    } else if (in_hunk && line.starts_with('-')) {
      hunk.removed.push_back(line.substr(1));
    } else if (in_hunk && line.starts_with('+')) {
      hunk.added.push_back(line.substr(1));
    }
  }
  end_hunk();
}

}  // namespace muniment::cli
