#include "cli/export/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "base/limits.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t written_piece_bytes = 1 << 20;
// Size of a body of 60 KiB with every byte doubled, plus the other fields.
constexpr std::size_t export_line_bytes_max = 1 << 20;

}  // namespace

int ExportFile::descriptor() const { return path_.empty() ? STDOUT_FILENO : fd_.get(); }

Result<ExportFile> ExportFile::open(const std::string& path, bool resume, ExportForm form) {
  if (path.empty()) return ExportFile({}, Fd());
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | (resume ? 0 : O_EXCL), 0600));
  if (!fd.open() && errno == EEXIST) {
    return Error(Errc::conflict, path + " exists. Continue it with --resume, or choose another name");
  }
  if (!fd.open()) return file_error("writing", path, errno);
  ExportFile file(path, std::move(fd));
  RETURN_IF_ERROR(file.take_up(form));
  return file;
}

Error ExportFile::is_of_another(std::string_view why) const {
  return {
      Errc::invalid_argument,
      fmt::format("{} belongs to a different export or is not an export: {}. The file was not changed", path_, why)};
}

// Lines end with a line feed and contain none, so text after the last line feed is an incomplete line.
Status ExportFile::take_up(ExportForm form) {
  const std::string_view beginning = export_beginning(form);
  std::string line, piece(written_piece_bytes, '\0');
  for (std::int64_t offset = 0;;) {
    ASSIGN_OR_RETURN(const std::size_t got, read_into(fd_, offset, piece, path_));
    std::string_view rest = std::string_view(piece).substr(0, got);
    if (offset == 0 && rest.substr(0, beginning.size()) != beginning.substr(0, got)) {
      return is_of_another(form == ExportForm::csv ? "it does not begin with the heading of CSV"
                                                   : "it does not begin with an event as JSON");
    }
    if (got == 0) break;
    offset += static_cast<std::int64_t>(got);
    for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
      line += rest.substr(0, end);
      rest.remove_prefix(end + 1);
      RETURN_IF_ERROR(take_line(form, line));
      line.clear();
    }
    line += rest;
    if (line.size() > export_line_bytes_max) return is_of_another("a line is too long");
  }
  if (so_far_) written_ = so_far_->last.seq;
  return success();
}

Status ExportFile::take_line(ExportForm form, std::string_view line) {
  const bool heading = form == ExportForm::csv && whole_bytes_ == 0;  // already checked
  whole_bytes_ += static_cast<std::int64_t>(line.size()) + 1;
  empty_ = false;
  if (heading) return success();
  auto place = place_of_line(form, line);
  if (!place) return is_of_another("a line is not an event");
  if (so_far_ && (place->seq <= so_far_->last.seq || place->log_id != so_far_->last.log_id))
    return is_of_another(fmt::format("seq {} is out of order", place->seq));
  if (!so_far_) so_far_.emplace();
  ++so_far_->events;
  const auto seq = static_cast<std::uint64_t>(place->seq);
  so_far_->seq_cubes += seq * seq * seq;
  so_far_->last = *std::move(place);
  return success();
}

Status ExportFile::go_on() {
  if (path_.empty()) return success();
  if (::ftruncate(fd_.get(), whole_bytes_) != 0 || ::lseek(fd_.get(), whole_bytes_, SEEK_SET) < 0)
    return file_error("writing", path_, errno);
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
