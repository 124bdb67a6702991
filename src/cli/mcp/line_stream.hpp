// Lines between two processes, on descriptors that are polled. Neither class blocks or sets O_NONBLOCK, because a
// descriptor that was inherited may be shared with the process that made it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace muniment::cli {

// A line with its line feed, or a part of a line that is longer than the reader holds. Only the last line of a stream
// may end without a line feed.
struct LinePiece {
  std::string bytes;
  bool begins = true;
  bool ends = true;
  bool whole() const { return begins && ends; }
};

class LineReader {
 public:
  // A line of more than `line_bytes_max`, its line feed included, comes in pieces of at most that size.
  LineReader(int descriptor, std::size_t line_bytes_max) : descriptor_(descriptor), line_bytes_max_(line_bytes_max) {}

  // Reads once; call it when poll() says that there is something. Afterwards `ended` may be true.
  void fill();
  // True once the stream is at its end or broken; `next` still gives what was read before.
  bool ended() const { return ended_; }
  std::optional<LinePiece> next();
  int descriptor() const { return descriptor_; }

 private:
  LinePiece take(std::size_t size, bool ends);

  int descriptor_;
  std::size_t line_bytes_max_;
  std::string buffer_;
  std::size_t taken_ = 0;     // of buffer_
  std::size_t searched_ = 0;  // of buffer_: there is no line feed before
  bool inside_line_ = false;  // the previous piece did not end its line
  bool ended_ = false;
};

class ByteWriter {
 public:
  explicit ByteWriter(int descriptor) : descriptor_(descriptor) {}

  void add(std::string_view bytes) { buffer_ += bytes; }
  // Writes as much as the other side takes now. Afterwards `broken` may be true.
  void flush();
  std::size_t waiting() const { return buffer_.size() - written_; }
  // True once the other side has closed: everything that is added is discarded.
  bool broken() const { return broken_; }
  int descriptor() const { return descriptor_; }

 private:
  bool write_some();

  int descriptor_;
  std::string buffer_;
  std::size_t written_ = 0;  // of buffer_
  bool is_socket_ = true;    // until a send() says otherwise
  bool broken_ = false;
};

}  // namespace muniment::cli
