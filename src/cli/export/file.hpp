// Where an export goes: standard output, or a file that can be taken up again after it broke off. Lines are gathered
// and written in large pieces; what a full disk cut off is known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/files/file.hpp"
#include "base/result.hpp"
#include "cli/export/rows.hpp"

namespace muniment::cli {

// What a file that is taken up again has, by which it is known whether it is of the same export.
struct ExportedSoFar {
  std::int64_t events = 0;
  std::uint64_t seq_cubes = 0;  // the sum of seq³, modulo 2^64: sums of runs that take turns are equal
  ExportPlace last;
};

class ExportFile {
 public:
  // `path` empty: standard output. A file that is there is refused unless it is to be taken up again (`resume`): then
  // it is read, and stays as it is until go_on(). Errors: invalid_argument where it is no export of this form.
  static Result<ExportFile> open(const std::string& path, bool resume, ExportForm form);

  const std::optional<ExportedSoFar>& so_far() const { return so_far_; }  // nullopt: no event is in it
  // Removes a line that was cut; what is written from now on comes after the last whole one.
  Status go_on();
  bool empty() const { return empty_; }  // nothing, not even a heading, is in it

  std::string& line() { return buffer_; }  // a line is appended to it, then `took` is called
  Status took(std::int64_t seq);
  Status flush();
  Status close();                                                   // flushed and, a file, on the disk
  std::optional<std::int64_t> written() const { return written_; }  // the seq up to which everything is out

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
  std::int64_t whole_bytes_ = 0;  // of its whole lines
  std::optional<std::int64_t> gathered_, written_;
  bool empty_ = true;
};

}  // namespace muniment::cli
