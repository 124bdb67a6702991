// Reads and writes lines on polled descriptors. Neither class blocks or sets O_NONBLOCK, because an inherited
// descriptor may be shared with other processes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace muniment::cli {

// A line with its line feed, or a part of a line longer than the reader's limit. Only the last line of a stream may
// lack a line feed.
struct LinePiece {
  std::string bytes;
  bool begins = true;
  bool ends = true;
  bool whole() const { return begins && ends; }
};

class LineReader {
 public:
  // A line over `line_bytes_max`, including its line feed, is returned in pieces of at most that size.
  LineReader(int descriptor, std::size_t line_bytes_max) : descriptor_(descriptor), line_bytes_max_(line_bytes_max) {}

  // Reads once; call it when poll() reports data. Afterwards `ended` may be true.
  void fill();
  // Returns true after the end of the stream or an error; `next` still returns data read before.
  bool ended() const { return ended_; }
  std::optional<LinePiece> next();
  int descriptor() const { return descriptor_; }

 private:
  LinePiece take(std::size_t size, bool ends);

  int descriptor_;
  std::size_t line_bytes_max_;
  std::string buffer_;
  std::size_t taken_ = 0;     // consumed bytes of buffer_
  std::size_t searched_ = 0;  // buffer_ has no line feed before this offset
  bool inside_line_ = false;  // the previous piece did not end its line
  bool ended_ = false;
};

class ByteWriter {
 public:
  explicit ByteWriter(int descriptor) : descriptor_(descriptor) {}

  void add(std::string_view bytes) { buffer_ += bytes; }
  // Writes as much as the other side accepts. Afterwards `broken` may be true.
  void flush();
  std::size_t waiting() const { return buffer_.size() - written_; }
  // Returns true after the other side has closed; added lines are discarded.
  bool broken() const { return broken_; }
  int descriptor() const { return descriptor_; }

 private:
  bool write_some();

  int descriptor_;
  std::string buffer_;
  std::size_t written_ = 0;  // written bytes of buffer_
  bool is_socket_ = true;    // false after send() fails with ENOTSOCK
  bool broken_ = false;
};

}  // namespace muniment::cli
