// Wraps the file system calls for artifact files: folders that are durable before their content is acknowledged, and
// files that have no name until they are synced.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/files/file.hpp"
#include "base/result.hpp"

namespace muniment::store {

// Writes all bytes or returns an error.
Status write_artifact(int fd, std::string_view bytes);

// Makes the bytes of a file durable. Call it once for each descriptor: after a failed fsync the kernel may report
// success for a second one although data was lost.
Status sync_file(int fd, std::string_view path);

// Makes the entries of a folder durable. `folder` must have been opened before the entries were made and must not be
// shared: the kernel reports a failure once for each descriptor, possibly to another thread.
Status sync_folder(const Fd& folder, std::string_view path);

// Makes entries of one folder durable for all threads that wait at the same time, with one sync. The descriptor is
// shared, so a failure is reported to every thread whose entry may be lost: to all that had begun when it happened,
// whichever sync was to answer them.
class GroupSync {
 public:
  // Call before the entry is made, and pass the result to `sync`.
  std::uint64_t begin() const;
  Status sync(const Fd& folder, std::string_view path, std::uint64_t begun);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t gathering_ = 1;  // round of callers that arrive now
  std::uint64_t done_ = 0;       // last synced round
  bool running_ = false;
  std::uint64_t failures_ = 0;
  std::optional<Error> last_failure_;
};

// The folders below a root. A cached folder exists and is durable in its parent, so a put in a known step creates no
// folder and syncs no parent.
class Folders {
 public:
  explicit Folders(const Fd& root) : root_(root) {}  // `root` must outlive this

  // Opens `path` ("runs/r1/main"). Creates missing folders, and syncs each parent in which an entry was made, now or by
  // a daemon that may have died before its sync.
  Result<Fd> open(const std::string& path);

 private:
  bool known(const std::string& path);
  Result<Fd> make(const std::string& path);
  const Fd& root_;
  std::mutex mutex_;
  std::unordered_set<std::string> durable_;
};

// A file without a name, which is deleted with its descriptor unless it is linked.
class UnnamedFile {
 public:
  static Result<UnnamedFile> open(int folder);
  int fd() const { return fd_.get(); }
  // Links the file as `name` in `folder`. Errors: conflict if the name exists.
  Status link(int folder, const std::string& name) const;

 private:
  explicit UnnamedFile(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace muniment::store
