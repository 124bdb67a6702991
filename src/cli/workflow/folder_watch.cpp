#include "cli/workflow/folder_watch.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>

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

// A folder that is nested too deep to be read exceeds the limit of the disk.
void FolderWatch::measure(bool until_stopped) {
  std::int64_t bytes = 0, files = 0;
  for (const std::string& folder : folders_) {
    std::error_code failed;
    fs::recursive_directory_iterator entries(folder, fs::directory_options::skip_permission_denied, failed);
    for (; !failed && entries != fs::recursive_directory_iterator(); entries.increment(failed)) {
      if (until_stopped && worker_.stopping()) return;
      std::error_code unknown;
      bytes += entry_bytes;
      const bool link = entries->is_symlink(unknown);
      const bool file = !link && entries->is_regular_file(unknown);
      files += link || file ? 1 : 0;
      if (limits_.files_max > 0 && files > limits_.files_max) exceeded_ = "files";
      if (file) {
        const auto size = entries->file_size(unknown);
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
