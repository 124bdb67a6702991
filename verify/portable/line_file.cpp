#include "verify/portable/line_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <filesystem>

#include "base/limits.hpp"

namespace muniment::verify {
namespace {

constexpr std::size_t read_bytes_at_once = 256 * 1024;

}  // namespace

Result<LineFile> LineFile::make() {
  std::error_code error;
  const std::string folder = std::filesystem::temp_directory_path(error);
  Fd file(::open(error ? "/tmp" : folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file.open()) return file_error("making a temporary file in", folder, errno);
  return LineFile(std::move(file));
}

Status LineFile::append(std::string_view bytes) {
  RETURN_IF_ERROR(write_all(file_.get(), bytes, "a temporary file"));
  size_ += static_cast<std::int64_t>(bytes.size());
  return success();
}

Result<std::optional<std::string_view>> LineReader::next() {
  std::size_t searched = used_;
  while (true) {
    const std::size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos) {
      const std::string_view line = std::string_view(buffer_).substr(used_, end - used_);
      line_at_ = next_ - static_cast<std::int64_t>(buffer_.size() - used_);
      used_ = end + 1;
      return std::optional(line);
    }
    buffer_.erase(0, used_);
    used_ = 0;
    searched = buffer_.size();
    if (buffer_.size() > limits::bundle_line_bytes_max) {
      return Error(Errc::corrupt, fmt::format("a line of over {} bytes", limits::bundle_line_bytes_max));
    }
    ASSIGN_OR_RETURN(const std::string more, read_at(file_.file(), next_, read_bytes_at_once));
    if (more.empty() && buffer_.empty()) return std::optional<std::string_view>();
    if (more.empty()) return Error(Errc::corrupt, "the last line has no line feed: the file is truncated");
    buffer_ += more;
    next_ += static_cast<std::int64_t>(more.size());
  }
}

}  // namespace muniment::verify
