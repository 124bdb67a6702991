// Waits for changes below folders (inotify). It reports that something changed and not what: the caller walks the
// folders again and compares, so an event that the kernel dropped costs nothing.
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "base/files/file.hpp"
#include "base/result.hpp"

namespace muniment::cli {

class FolderEvents {
 public:
  // From now on, the first SIGINT, SIGTERM or SIGHUP sets `stopping`, and the second one ends the process. Errors:
  // over_budget at the kernel's limit of inotify instances.
  static Result<FolderEvents> open();

  // Watches an open folder. Every walk calls this for each folder before it reads the folder, so that no change is
  // missed and new folders are watched; a folder that is watched already costs a system call. Errors: over_budget at
  // the kernel's limit of watches.
  Status add(int folder, const std::string& path);

  // Waits until something changed and nothing has changed for 200 ms since, at most 5 s after the first change, or
  // until `longest` has passed without a change. Returns false once stopping.
  bool wait_for_change(std::chrono::milliseconds longest = std::chrono::milliseconds(-1));

  // Waits for a time. Returns false once stopping.
  bool pause(std::chrono::milliseconds time) const;

  bool stopping() const { return !pause({}); }

 private:
  FolderEvents(Fd events, Fd stop) : events_(std::move(events)), stop_(std::move(stop)) {}
  void drain();

  Fd events_;
  Fd stop_;  // readable once stopping
};

}  // namespace muniment::cli
