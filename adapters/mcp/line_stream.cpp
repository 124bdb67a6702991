#include "adapters/mcp/line_stream.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

namespace muniment::cli {
namespace {

constexpr std::size_t read_bytes = 64 * 1024;
// Bytes taken from the front of a buffer before they are removed from it.
constexpr std::size_t compact_bytes = 256 * 1024;

}  // namespace

void LineReader::fill() {
  const std::size_t before = buffer_.size();
  buffer_.resize(before + read_bytes);
  const ssize_t got = ::read(descriptor_, buffer_.data() + before, read_bytes);
  const int why = errno;
  buffer_.resize(before + (got > 0 ? static_cast<std::size_t>(got) : 0));
  if (got == 0 || (got < 0 && why != EINTR && why != EAGAIN)) ended_ = true;
}

std::optional<LinePiece> LineReader::next() {
  const std::size_t end = buffer_.find('\n', std::max(searched_, taken_));
  const std::size_t held = buffer_.size() - taken_;
  if (end != std::string::npos && end + 1 - taken_ <= line_bytes_max_) return take(end + 1 - taken_, true);
  if (held > line_bytes_max_) return take(line_bytes_max_, false);
  searched_ = buffer_.size();
  if (ended_ && (held > 0 || inside_line_)) return take(held, true);
  return std::nullopt;
}

LinePiece LineReader::take(std::size_t size, bool ends) {
  LinePiece piece{buffer_.substr(taken_, size), !inside_line_, ends};
  inside_line_ = !ends;
  taken_ += size;
  if (taken_ == buffer_.size()) {
    buffer_.clear();
    taken_ = 0;
  } else if (taken_ > compact_bytes) {
    buffer_.erase(0, taken_);
    taken_ = 0;
  }
  searched_ = taken_;
  return piece;
}

void ByteWriter::flush() {
  while (!broken_ && waiting() > 0 && write_some()) continue;
  if (broken_ || waiting() == 0) {
    buffer_.clear();
    written_ = 0;
  } else if (written_ > compact_bytes) {
    buffer_.erase(0, written_);
    written_ = 0;
  }
}

// Returns false if the other side accepts no more data now.
bool ByteWriter::write_some() {
  const char* const bytes = buffer_.data() + written_;
  ssize_t written = -1;
  if (is_socket_) {
    written = ::send(descriptor_, bytes, waiting(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (written < 0 && errno == ENOTSOCK) {
      is_socket_ = false;
      return true;
    }
  } else {
    // A pipe that poll() calls writable takes PIPE_BUF bytes without blocking.
    pollfd wait{descriptor_, POLLOUT, 0};
    if (::poll(&wait, 1, 0) <= 0) return false;
    written = ::write(descriptor_, bytes, std::min<std::size_t>(waiting(), PIPE_BUF));
  }
  if (written >= 0) {
    written_ += static_cast<std::size_t>(written);
    return true;
  }
  if (errno == EINTR) return true;
  broken_ = errno != EAGAIN;
  return false;
}

}  // namespace muniment::cli
