// The file system calls under the artifact files: descriptors that close themselves, paths that
// cannot leave the root, folders that are durable before anything in them is acknowledged, and
// files that have no name until they are synced.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/result.hpp"
#include "store/owned_fd.hpp"

namespace muniment::store {

// An Error for a failed call: not_found, over_budget (no space), corrupt (a link or a special file
// stands in the way), unavailable (out of descriptors or memory), otherwise system_error.
Error disk_error(std::string_view doing, std::string_view path, int error_number);

// Refuses what is not a plain path below a root: absolute, empty, with "." or "..", or with NUL.
Status check_beneath(std::string_view path);

// Opens below `root`, following no link anywhere on the way. A FIFO does not block.
Result<OwnedFd> open_beneath(int root, std::string_view path, int flags);

// As above, for reading, and only a regular file; `size` is its length.
struct OpenFile {
  OwnedFd fd;
  std::int64_t size = 0;
};
Result<OpenFile> open_regular(int root, std::string_view path);

// All of it, or an error.
Status write_all(int fd, std::string_view bytes);

// Makes the file's bytes durable. Once a descriptor: after a failed fsync the kernel may report
// success for a second one with the data gone.
Status sync_file(int fd, std::string_view path);

// Makes the entries of a folder durable. `folder` was opened before the entries were made, and is
// nobody else's: a failure is reported once a descriptor, and another thread could eat it.
Status sync_folder(const OwnedFd& folder, std::string_view path);

// The folders below a root. A folder that is in the cache exists and is durable in its parent, so
// that a put in a known step makes no folder and syncs no parent.
class Folders {
 public:
  explicit Folders(int root) : root_(root) {}

  // Opens `path` ("runs/r1/main"), making what is missing of it and syncing each parent in which
  // an entry was made, or may have been made by a daemon that died before its sync.
  Result<OwnedFd> open(const std::string& path);

 private:
  bool known(const std::string& path);
  Result<OwnedFd> make(const std::string& path);
  const int root_;
  std::mutex mutex_;
  std::unordered_set<std::string> durable_;
};

// A file without a name: it vanishes with its descriptor unless it is linked.
class UnnamedFile {
 public:
  static Result<UnnamedFile> open(int folder);
  int fd() const { return fd_.get(); }
  // Gives it the name `name` in `folder`; conflict when something has that name.
  Status link(int folder, const std::string& name) const;

 private:
  explicit UnnamedFile(OwnedFd fd) : fd_(std::move(fd)) {}
  OwnedFd fd_;
};

}  // namespace muniment::store
