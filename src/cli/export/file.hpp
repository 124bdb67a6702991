// Output of an export: standard output, or a file that can be resumed after an interruption. Lines are buffered and
// written in large pieces; a line truncated by a full disk is detected.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/files/file.hpp"
#include "base/result.hpp"
#include "cli/export/rows.hpp"

namespace muniment::cli {

// Contents of a resumed file, used to check that it belongs to the same export.
struct ExportedSoFar {
  std::int64_t events = 0;
  std::uint64_t seq_cubes = 0;  // sum of seq³ modulo 2^64; plain sums of interleaved runs can be equal
  ExportPlace last;
};

class ExportFile {
 public:
  // An empty `path` means standard output. An existing file is refused unless `resume` is set; then it is read, and not
  // changed before go_on(). Errors: invalid_argument if it is not an export of this form.
  static Result<ExportFile> open(const std::string& path, bool resume, ExportForm form);

  const std::optional<ExportedSoFar>& so_far() const { return so_far_; }  // nullopt: the file contains no event
  // Removes an incomplete last line; further output follows the last complete one.
  Status go_on();
  bool empty() const { return empty_; }  // true: the file has no content, not even a heading

  std::string& line() { return buffer_; }  // append a line to it, then call `took`
  Status took(std::int64_t seq);
  Status flush();
  Status close();                                                   // flushes, and syncs a file
  std::optional<std::int64_t> written() const { return written_; }  // seq up to which all events are written

 private:
  ExportFile(std::string path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  Status take_up(ExportForm form);
  Status take_line(ExportForm form, std::string_view line);
  Error is_of_another(std::string_view why) const;
  int descriptor() const;

  std::string path_;
  Fd fd_;
  std::string buffer_;
  std::optional<ExportedSoFar> so_far_;
  std::int64_t whole_bytes_ = 0;  // total size of the complete lines
  std::optional<std::int64_t> gathered_, written_;
  bool empty_ = true;
};

}  // namespace muniment::cli
