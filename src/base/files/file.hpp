// Provides files: descriptors that close themselves, paths that cannot leave their root, reads that never block on
// special files, and writes that are durable or fail.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace muniment {

// Owns a descriptor and closes it on destruction.
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

// Error of a failed call: not_found, denied, conflict (the path exists or is a folder), over_budget (no space), corrupt
// (the path is a link or a special file), invalid_argument (a name that is too long), unavailable (out of descriptors
// or memory), otherwise system_error. Example: "opening keys/a: No such file or directory".
Error file_error(std::string_view doing, std::string_view path, int error_number);

// An open regular file.
struct RegularFile {
  Fd fd;
  std::int64_t size = 0;  // size in bytes when it was opened
};

Result<Fd> open_folder(const std::string& path);
// Returns a path of the open file or folder that is valid in this process while it is open.
std::string path_of(const Fd& file);

// Returns whether the path is the folder or lies in it, by their names: both are absolute, without "." and "..".
bool is_beneath(std::string_view path, std::string_view folder);

// Returns the time at which the file changed (ctime), which no user but root can set.
Time changed_at(const struct stat& status);

// Errors: invalid_argument unless `path` is relative, not empty, and without ".", ".." and NUL.
Status check_beneath(std::string_view path);

// Opens a path below `root` and follows no link in any component (openat2). Does not block on a FIFO.
Result<Fd> open_beneath(const Fd& root, std::string_view path, int flags);
// Opens a regular file below `root` for reading. Errors: also corrupt if it is not a regular file.
Result<RegularFile> open_regular_beneath(const Fd& root, std::string_view path);
// Opens a regular file at a path that its owner chose: follows links.
Result<RegularFile> open_regular(const std::string& path);
// Opens a regular file at a path that a caller named. Errors: invalid_argument if it is not a regular file, because the
// caller made the mistake.
Result<RegularFile> open_named(const std::string& path);

// Fills `buffer` from `offset` on. Returns the number of bytes, which is smaller only at the end of the file. Errors
// name `path`.
Result<std::size_t> read_into(const Fd& file, std::int64_t offset, std::string& buffer, std::string_view path);

// Returns the bytes [offset, offset + length), fewer only at the end of the file.
Result<std::string> read_at(const Fd& file, std::int64_t offset, std::size_t length);

// Returns the SHA-256 of a file at a path that a caller named, hexadecimal; uses constant memory. Errors: as
// open_named.
Result<std::string> sha256_of_file(const std::string& path);

// Writes all bytes. Errors name `path`.
Status write_all(int file, std::string_view bytes, std::string_view path);

// Reads a whole regular file. Errors: too_large if it exceeds `bytes_max`.
Result<std::string> read_file(const std::string& path, std::size_t bytes_max);
// Reads a whole file at a path that a caller named. Errors: as open_named and read_file.
Result<std::string> read_named(const std::string& path, std::size_t bytes_max);
// Reads a whole file for a caller that may read only below `folders` (absolute paths): follows no link below a folder,
// and reads nothing in `excluded`. A relative path is looked up in each folder. Errors: denied for any other path;
// as read_named.
Result<std::string> read_within(const std::vector<std::string>& folders, const std::string& excluded,
                                const std::string& path, std::size_t bytes_max);
// Reads a whole file that decides what is trusted. Errors: as read_named, and denied if users other than its owner may
// write it.
Result<std::string> read_trusted(const std::string& path, std::size_t bytes_max);

// Reads a user-named file, pipe or device to its end, so that <(command) and /dev/stdin work like files. It may block.
// Errors: invalid_argument for a folder; too_large as above.
Result<std::string> read_input(const std::string& path, std::size_t bytes_max);
// Reads an open descriptor to its end; errors call it `name`.
Result<std::string> read_input(int descriptor, std::string_view name, std::size_t bytes_max);

// Makes `path` durable with exactly these bytes. After an error or a crash it has either these bytes or its old
// content. The function writes a new file, syncs it once, renames it, and syncs the folder. Never repeat a failed sync:
// call this again, which writes a new file.
Status write_file_durably(const std::string& path, std::string_view bytes, mode_t mode = 0600);

}  // namespace muniment
