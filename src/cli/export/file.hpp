// Where an export goes: standard output, or a file that can be taken up again after it broke off. Lines are gathered
// and written in large pieces; what a full disk cut off is known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/file.hpp"
#include "base/result.hpp"

namespace muniment::cli {

class ExportFile {
 public:
  // `path` empty: standard output. A file that is there is refused unless it is to be taken up again (`resume`): then
  // a line that was cut is removed, and after() is the seq of the last whole one.
  static Result<ExportFile> open(const std::string& path, bool resume);

  std::optional<std::int64_t> after() const { return after_; }
  bool empty() const { return empty_; }       // nothing, not even a heading, is in it

  std::string& line() { return buffer_; }     // a line is appended to it, then `took` is called
  Status took(std::int64_t seq);
  Status flush();
  Status close();                             // flushed and, a file, on the disk
  std::optional<std::int64_t> written() const { return written_; }  // the seq up to which everything is out

 private:
  ExportFile(std::string path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  Status take_up();
  int descriptor() const;

  std::string path_;
  Fd fd_;
  std::string buffer_;
  std::optional<std::int64_t> after_, gathered_, written_;
  bool empty_ = true;
};

}  // namespace muniment::cli
