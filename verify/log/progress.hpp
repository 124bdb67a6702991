// Prints the progress of a long verify as one line on standard error, only on a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace muniment::verify {

class ProgressLine {
 public:
  explicit ProgressLine(bool shown) : shown_(shown) {}
  std::function<void(const char* doing, std::int64_t done, std::int64_t of)> sink();
  void clear();

 private:
  void show(const char* doing, std::int64_t done, std::int64_t of);
  bool shown_;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace muniment::verify
