// Measures the folders that a command writes while it runs, in a thread of its own: a large folder takes long.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/process/worker_thread.hpp"

namespace muniment::cli {

struct FolderLimits {
  std::int64_t bytes_max = 0;
  std::int64_t files_max = 0;  // files and links; 0: no limit
};

class FolderWatch {
 public:
  FolderWatch(std::vector<std::string> folders, FolderLimits limits) : folders_(std::move(folders)), limits_(limits) {}

  void start();
  // Ends the thread and measures `folders`. Returns as `exceeded`.
  const char* finish(std::vector<std::string> folders);

  // Name of the limit that is exceeded, disk_bytes or files; nullptr: none was.
  const char* exceeded() const { return exceeded_; }

 private:
  void measure(bool until_stopped);

  std::vector<std::string> folders_;
  const FolderLimits limits_;
  std::atomic<const char*> exceeded_{nullptr};
  WorkerThread worker_;
};

}  // namespace muniment::cli
