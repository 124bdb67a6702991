// The files of a folder, one at a time: what .gitignore files, hidden names and the caller's patterns leave over. Links
// are never followed, so that there are no loops and nothing outside is read; names come as the disk gives them, so
// that a folder with a million entries costs no more memory than one with ten.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/files/file.hpp"
#include "base/result.hpp"
#include "cli/ingest/ignore_rules.hpp"

namespace muniment::cli {

struct WalkOptions {
  bool hidden = false;       // also what begins with a dot; never .git
  bool ignore_files = true;  // .gitignore counts
  IgnoreRules include;       // only these, where there are any: files, or all below a folder
  IgnoreRules exclude;
};

struct FoundFile {
  int folder = -1;  // open; the file's name is relative to it
  std::string name;
  std::string path;  // from the folder that is walked
};

struct WalkVisitor {
  std::function<Status(const FoundFile&)> file;                              // an error ends the walk
  std::function<void(std::string_view path, std::string_view why)> skipped;  // a link, a device, an unreadable folder
  std::function<void()> ignored;                                             // by a rule; folders count once
};

// Errors: those of the root, and of `file`.
Status walk_folder(const std::string& root, const WalkOptions& options, const WalkVisitor& visitor);

}  // namespace muniment::cli
