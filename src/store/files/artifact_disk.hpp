// The file system calls under the artifact files: folders that are durable before anything in them
// is acknowledged, and files that have no name until they are synced.
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

// All of it, or an error.
Status write_artifact(int fd, std::string_view bytes);

// Makes the file's bytes durable. Once a descriptor: after a failed fsync the kernel may report
// success for a second one with the data gone.
Status sync_file(int fd, std::string_view path);

// Makes the entries of a folder durable. `folder` was opened before the entries were made, and is
// nobody else's: a failure is reported once a descriptor, and another thread could eat it.
Status sync_folder(const Fd& folder, std::string_view path);

// Makes entries of one folder durable for all who wait at the same time: one sync answers them
// together. The descriptor is shared, so a failure is told to everybody whose entry may be lost: to
// all that had begun when it happened, whichever sync was to answer them.
class GroupSync {
 public:
  // Before the entry is made; `sync` takes the answer.
  std::uint64_t begin() const;
  Status sync(const Fd& folder, std::string_view path, std::uint64_t begun);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t gathering_ = 1;  // the round that whoever comes now belongs to
  std::uint64_t done_ = 0;       // the last round that was synced
  bool running_ = false;
  std::uint64_t failures_ = 0;
  std::optional<Error> last_failure_;
};

// The folders below a root. A folder that is in the cache exists and is durable in its parent, so
// that a put in a known step makes no folder and syncs no parent.
class Folders {
 public:
  explicit Folders(const Fd& root) : root_(root) {}  // which outlives it

  // Opens `path` ("runs/r1/main"), making what is missing of it and syncing each parent in which
  // an entry was made, or may have been made by a daemon that died before its sync.
  Result<Fd> open(const std::string& path);

 private:
  bool known(const std::string& path);
  Result<Fd> make(const std::string& path);
  const Fd& root_;
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
  explicit UnnamedFile(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace muniment::store
