// Queues the lines of one direction in order; each line is held until all its conditions are met.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "adapters/mcp/line_stream.hpp"

namespace muniment::cli {

class LineGate {
 public:
  // Adds a line. `holds` is the number of `release` calls that the line waits for. Returns the number of the line.
  std::uint64_t add(std::string bytes, std::size_t holds) {
    bytes_ += bytes.size();
    lines_.push_back({std::move(bytes), holds});
    return first_ + lines_.size() - 1;
  }
  void release(std::uint64_t line) {
    if (Line* const held = find(line); held != nullptr && held->holds > 0) --held->holds;
  }
  // Replaces the line; empty: drops it.
  void replace(std::uint64_t line, std::string bytes) {
    Line* const held = find(line);
    if (held == nullptr) return;
    bytes_ -= held->bytes.size();
    bytes_ += bytes.size();
    held->bytes = std::move(bytes);
  }
  bool held(std::uint64_t line) const {
    return line >= first_ && line - first_ < lines_.size() && lines_[line - first_].holds > 0;
  }
  // Returns all lines before the first held one.
  void pass_to(ByteWriter& writer) {
    for (; !lines_.empty() && lines_.front().holds == 0; ++first_) {
      writer.add(lines_.front().bytes);
      bytes_ -= lines_.front().bytes.size();
      lines_.pop_front();
    }
  }
  std::size_t bytes() const { return bytes_; }
  bool empty() const { return lines_.empty(); }

 private:
  struct Line {
    std::string bytes;
    std::size_t holds = 0;
  };
  Line* find(std::uint64_t line) {
    return line >= first_ && line - first_ < lines_.size() ? &lines_[line - first_] : nullptr;
  }

  std::deque<Line> lines_;
  std::uint64_t first_ = 0;  // number of the first line
  std::size_t bytes_ = 0;
};

}  // namespace muniment::cli
