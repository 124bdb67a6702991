// Files: descriptors that close themselves, paths that cannot leave their root, reading that never
// blocks on what is not a file, and writing that is durable or fails.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"

namespace muniment {

// A descriptor, closed when it goes.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() { reset(); }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  void reset();
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

// What a failed call means: not_found, denied, conflict (exists, or a folder stands there), over_budget (no space),
// corrupt (a link or a special file stands in the way), invalid_argument (a name that is too long), unavailable (out of
// descriptors or memory), otherwise system_error.
// "opening keys/a: No such file or directory".
Error file_error(std::string_view doing, std::string_view path, int error_number);

// An open regular file.
struct RegularFile {
  Fd fd;
  std::int64_t size = 0;  // bytes, when it was opened
};

Result<Fd> open_folder(const std::string& path);

// invalid_argument for what is not a plain path below a root: absolute, empty, with "." or "..", with NUL.
Status check_beneath(std::string_view path);

// Opens a path below `root`, following no link anywhere on the way (openat2). A FIFO does not block.
Result<Fd> open_beneath(const Fd& root, std::string_view path, int flags);
// As above, to be read; corrupt for what is not a regular file.
Result<RegularFile> open_regular_beneath(const Fd& root, std::string_view path);
// The same for a path that its owner chose: links are followed.
Result<RegularFile> open_regular(const std::string& path);
// The same for a path that a caller named just now: what is no file there is the caller's mistake, so invalid_argument.
Result<RegularFile> open_named(const std::string& path);

// Fills `buffer` from `offset` on; answers how many bytes it got, fewer only where the file ends. An error names
// `path`.
Result<std::size_t> read_into(const Fd& file, std::int64_t offset, std::string& buffer, std::string_view path);

// The bytes [offset, offset + length), fewer only where the file ends.
Result<std::string> read_at(const Fd& file, std::int64_t offset, std::size_t length);

// All of it, or an error that names `path`.
Status write_all(int file, std::string_view bytes, std::string_view path);

// The whole of a regular file. Errors: too_large when it has more than `bytes_max`.
Result<std::string> read_file(const std::string& path, std::size_t bytes_max);
// The same for a path that a caller named just now; errors as open_named.
Result<std::string> read_named(const std::string& path, std::size_t bytes_max);

// All that comes until the end of what a person named to be read: a file, a pipe or a device, so that <(command) and
// /dev/stdin are as good as a file. It may wait. Errors: invalid_argument for a folder; too_large as above.
Result<std::string> read_input(const std::string& path, std::size_t bytes_max);
// The same of what is open already; `name` is what the message calls it.
Result<std::string> read_input(int descriptor, std::string_view name, std::size_t bytes_max);

// Afterwards `path` is durable with exactly these bytes; after an error or a crash it is that, or
// what it was. The bytes go to a new file, which is synced once, takes the name, and the folder is
// synced. Never repeat a failed sync: call this again, which writes a new file.
Status write_file_durably(const std::string& path, std::string_view bytes, mode_t mode = 0600);

}  // namespace muniment
