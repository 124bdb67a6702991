// A text that may be large, put aside in a file without a name, and read back line by line.
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

  // The next line without its end, valid until the next call; nullopt: there is none. Errors: corrupt for one that
  // is too long, or does not end.
  Result<std::optional<std::string_view>> next();
  std::int64_t line_at() const { return line_at_; }  // where that line begins

 private:
  const LineFile& file_;
  std::int64_t next_;  // the first byte that is not in the buffer
  std::int64_t line_at_;
  std::string buffer_;
  std::size_t used_ = 0;  // of the buffer
};

}  // namespace muniment::verify
