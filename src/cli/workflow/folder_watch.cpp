#include "cli/workflow/folder_watch.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

namespace muniment::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto interval = std::chrono::milliseconds(200);
constexpr int rest_factor = 9;  // the thread rests for this multiple of the time that it measured

constexpr std::int64_t entry_bytes = 512;  // an empty file occupies the disk too

bool too_deep(const std::error_code& failed) {
  return failed == std::errc::filename_too_long || failed == std::errc::too_many_files_open;
}

}  // namespace

void FolderWatch::start() {
  worker_.start("folders", [this] {
    for (;;) {
      const auto began = Clock::now();
      measure(true);
      const Clock::duration took = Clock::now() - began;
      auto held = worker_.lock();
      if (exceeded_ != nullptr || !worker_.pause(held, std::max<Clock::duration>(interval, took * rest_factor))) return;
    }
  });
}

const char* FolderWatch::finish(std::vector<std::string> folders) {
  worker_.stop();
  folders_ = std::move(folders);
  if (exceeded_ == nullptr) measure(false);
  return exceeded_;
}

// A folder that is nested too deep to be read exceeds the limit of the disk. One that is removed meanwhile hides no
// other one.
void FolderWatch::measure(bool until_stopped) {
  std::int64_t bytes = 0, files = 0;
  std::vector<fs::path> left(folders_.begin(), folders_.end());
  while (!left.empty()) {
    const fs::path folder = std::move(left.back());
    left.pop_back();
    std::error_code failed;
    for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
      if (until_stopped && worker_.stopping()) return;
      std::error_code unknown;
      bytes += entry_bytes;
      const fs::file_type type = entry->symlink_status(unknown).type();
      if (too_deep(unknown)) exceeded_ = "disk_bytes";
      files += type == fs::file_type::symlink || type == fs::file_type::regular ? 1 : 0;
      if (type == fs::file_type::directory) left.push_back(entry->path());
      if (limits_.files_max > 0 && files > limits_.files_max) exceeded_ = "files";
      if (type == fs::file_type::regular) {
        const auto size = entry->file_size(unknown);
        if (too_deep(unknown)) exceeded_ = "disk_bytes";
        if (!unknown) bytes += static_cast<std::int64_t>(size);
      }
      if (bytes > limits_.bytes_max) exceeded_ = "disk_bytes";
      if (exceeded_ != nullptr) return;
    }
    if (too_deep(failed)) exceeded_ = "disk_bytes";
  }
}

}  // namespace muniment::cli
