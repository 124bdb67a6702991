// Creates and locks the data folder.
#include "daemon/start/data_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace muniment::daemon {
namespace {

// Closes a folder that holds nothing yet to other users, as initdb does.
void close_to_others(const std::string& path) {
  struct stat about {};
  std::error_code failed;
  if (std::filesystem::is_empty(path, failed) && !failed && ::stat(path.c_str(), &about) == 0)
    ::chmod(path.c_str(), about.st_mode & 0770U);
}

}  // namespace

Result<DataFolder> DataFolder::take(const std::string& path) {
  std::error_code failed;
  const bool made = std::filesystem::create_directories(path, failed);
  if (failed)
    return Error(Errc::denied,
                 "cannot create the data folder " + path + ": " + failed.message() + ". Choose another: --data DIR");
  if (made) ::chmod(path.c_str(), 0700);
  close_to_others(path);
  const std::string lock = path + "/munimentd.lock";
  const int descriptor = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) return Error(Errc::denied, "opening " + lock + ": " + std::strerror(errno));
  DataFolder folder(descriptor);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    char holder[32] = {};
    const ssize_t size = ::pread(descriptor, holder, sizeof holder - 1, 0);
    return Error(Errc::conflict,
                 "the data folder " + path + " is held by another daemon" +
                     (size > 0 ? " (pid " + std::string(holder, static_cast<std::size_t>(size)) + ")" : "") +
                     ". Stop it first: muniment down --data " + path);
  }
  const std::string pid = std::to_string(::getpid());
  if (::ftruncate(descriptor, 0) != 0 || ::pwrite(descriptor, pid.data(), pid.size(), 0) < 0) {
    return Error(Errc::unavailable, "writing " + lock + ": " + std::strerror(errno));
  }
  return folder;
}

DataFolder::DataFolder(DataFolder&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

DataFolder::~DataFolder() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace muniment::daemon
