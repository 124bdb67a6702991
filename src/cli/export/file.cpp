#include "cli/export/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/limits.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t written_piece_bytes = 1 << 20;
// A body of 60 KiB whose every byte is doubled, and the fields around it.
constexpr std::int64_t export_line_bytes_max = 1 << 20;

// The seq with which a line of either form begins.
std::optional<std::int64_t> seq_of_line(std::string_view line) {
  constexpr std::string_view opening = "{\"seq\":";
  if (line.starts_with(opening)) line.remove_prefix(opening.size());
  return parse_decimal(line.substr(0, line.find(',')));
}

}  // namespace

int ExportFile::descriptor() const { return path_.empty() ? STDOUT_FILENO : fd_.get(); }

Result<ExportFile> ExportFile::open(const std::string& path, bool resume) {
  if (path.empty()) return ExportFile({}, Fd());
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | (resume ? 0 : O_EXCL), 0600));
  if (!fd.open() && errno == EEXIST) {
    return Error(Errc::conflict, path + " is there. Go on with it: --resume; or choose another name");
  }
  if (!fd.open()) return file_error("writing", path, errno);
  ExportFile file(path, std::move(fd));
  RETURN_IF_ERROR(file.take_up());
  return file;
}

// Lines end with a line feed and hold none: what stands behind the last one was cut.
Status ExportFile::take_up() {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) return file_error("reading", path_, errno);
  const std::int64_t begin = std::max<std::int64_t>(0, status.st_size - 2 * export_line_bytes_max);
  ASSIGN_OR_RETURN(const std::string tail, read_at(fd_, begin, static_cast<std::size_t>(status.st_size - begin)));
  const std::size_t end = tail.rfind('\n');
  const std::int64_t whole = end == std::string::npos ? 0 : begin + static_cast<std::int64_t>(end) + 1;
  if (end == std::string::npos && status.st_size > export_line_bytes_max) {
    return Error(Errc::conflict, path_ + " is no export: a line of it is too long");
  }
  if (whole > 0) {
    const std::size_t before = end == 0 ? std::string::npos : tail.rfind('\n', end - 1);
    const std::string_view last = std::string_view(tail).substr(before == std::string::npos ? 0 : before + 1, end - (before == std::string::npos ? 0 : before + 1));
    after_ = seq_of_line(last);
    if (!after_ && !last.starts_with("seq,")) return Error(Errc::conflict, path_ + " is no export: its last line has no seq");
    empty_ = false;
  }
  if (::ftruncate(fd_.get(), whole) != 0 || ::lseek(fd_.get(), whole, SEEK_SET) < 0) return file_error("writing", path_, errno);
  written_ = after_;
  return success();
}

Status ExportFile::took(std::int64_t seq) {
  gathered_ = seq;
  return buffer_.size() < written_piece_bytes ? success() : flush();
}

Status ExportFile::flush() {
  RETURN_IF_ERROR(write_all(descriptor(), buffer_, path_.empty() ? "standard output" : path_));
  buffer_.clear();
  if (gathered_) written_ = gathered_;
  return success();
}

Status ExportFile::close() {
  RETURN_IF_ERROR(flush());
  if (!path_.empty() && ::fsync(fd_.get()) != 0) return file_error("writing", path_, errno);
  return success();
}

}  // namespace muniment::cli
