#include "verify/log/progress.hpp"

#include <cstdio>

#include "base/text.hpp"

namespace muniment::verify {
namespace {

constexpr std::chrono::milliseconds pause{200};

}  // namespace

std::function<void(const char*, std::int64_t, std::int64_t)> ProgressLine::sink() {
  if (!shown_) return {};
  return [this](const char* doing, std::int64_t done, std::int64_t of) { show(doing, done, of); };
}

void ProgressLine::show(const char* doing, std::int64_t done, std::int64_t of) {
  const auto now = std::chrono::steady_clock::now();
  if (done > 0 && now - last_ < pause) return;
  last_ = now;
  const auto text = [](std::int64_t value) { return grouped(static_cast<std::uint64_t>(value)); };
  if (done > 0) {
    std::fprintf(stderr, "\r\x1b[Kverifying %s: %s of %s", doing, text(done).c_str(), text(of).c_str());
  } else {
    std::fprintf(stderr, "\r\x1b[Kverifying %s", doing);
  }
  std::fflush(stderr);
}

void ProgressLine::clear() {
  if (shown_) std::fprintf(stderr, "\r\x1b[K");
}

}  // namespace muniment::verify
