// Visits the files of a folder, filtered by .gitignore files, hidden names and the caller's patterns. Links are never
// followed, which avoids loops and reads outside the folder. Entries are visited in directory order, so memory does not
// grow with the size of a folder.
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
  bool hidden = false;       // include names that begin with a dot, except .git
  bool ignore_files = true;  // apply .gitignore files
  IgnoreRules include;       // if not empty, visit only these files and folders
  IgnoreRules exclude;
};

struct FoundFile {
  int folder = -1;  // open folder; the file name is relative to it
  std::string name;
  std::string path;  // relative to the walked folder
};

struct WalkVisitor {
  std::function<Status(const FoundFile&)> file;  // an error ends the walk
  std::function<void(std::string_view path, std::string_view why)>
      skipped;                    // called for a link, a device or an unreadable folder
  std::function<void()> ignored;  // called per path ignored by a rule; a folder counts once
  // Called for each open folder before it is read; an error ends the walk.
  std::function<Status(int folder, const std::string& path)> entered = {};
};

// Errors: those of the root, of `file` and of `entered`.
Status walk_folder(const std::string& root, const WalkOptions& options, const WalkVisitor& visitor);

}  // namespace muniment::cli
