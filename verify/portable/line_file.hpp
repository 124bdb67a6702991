// Stores a text of any size in an unnamed temporary file and reads it back line by line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/files/file.hpp"
#include "base/result.hpp"

namespace muniment::verify {

class LineFile {
 public:
  static Result<LineFile> make();
  Status append(std::string_view bytes);
  const Fd& file() const { return file_; }
  std::int64_t size() const { return size_; }

 private:
  explicit LineFile(Fd file) : file_(std::move(file)) {}
  Fd file_;
  std::int64_t size_ = 0;
};

class LineReader {
 public:
  explicit LineReader(const LineFile& file, std::int64_t from = 0) : file_(file), next_(from), line_at_(from) {}

  // Returns the next line without its terminator, valid until the next call; nullopt: no more lines. Errors: corrupt if
  // the line is too long or not terminated.
  Result<std::optional<std::string_view>> next();
  std::int64_t line_at() const { return line_at_; }  // offset at which that line begins

 private:
  const LineFile& file_;
  std::int64_t next_;  // offset of the first byte that is not in the buffer
  std::int64_t line_at_;
  std::string buffer_;
  std::size_t used_ = 0;  // number of bytes of the buffer that were consumed
};

}  // namespace muniment::verify
