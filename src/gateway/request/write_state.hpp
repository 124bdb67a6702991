// Tracks whether a request has written anything, for an answer that precedes the end of its work: the loop answers when
// the deadline passes or the client disconnects, while a worker may still run. It decides whether that answer may claim
// that nothing was written.
#pragma once

#include <atomic>
#include <cstdint>

namespace muniment::gateway {

class WriteState {
 public:
  // Call this before a permanent change. Returns false if the request was already answered as one that wrote nothing;
  // then nothing may be written. Any thread.
  bool begin_writing() { return begin(writing); }
  // Like `begin_writing`, for a change outside of the request's append: then an error no longer means that nothing was
  // written.
  bool begin_writing_itself() { return begin(writing | itself); }
  bool wrote_itself() const { return (bits_.load(std::memory_order_acquire) & itself) != 0; }
  // Marks the change as permanent: from now on no error means that nothing was written.
  void has_written() { bits_.fetch_or(done, std::memory_order_acq_rel); }
  bool is_written() const { return (bits_.load(std::memory_order_acquire) & done) != 0; }

  // Marks the request as answered. Returns true if its writes may still take effect. Loop thread only.
  bool answer() { return (bits_.fetch_or(answered, std::memory_order_acq_rel) & writing) != 0; }

  // Returns true if the request was answered as one that wrote nothing.
  bool over() const { return bits_.load(std::memory_order_acquire) == answered; }
  // Returns true if the request was answered, so that the client ignores further work.
  bool is_answered() const { return (bits_.load(std::memory_order_acquire) & answered) != 0; }

 private:
  bool begin(std::uint8_t bits) {
    std::uint8_t before = 0;
    while (!bits_.compare_exchange_weak(before, static_cast<std::uint8_t>(before | bits), std::memory_order_acq_rel)) {
      if (before == answered) return false;
    }
    return true;
  }

  static constexpr std::uint8_t writing = 1, answered = 2, itself = 4, done = 8;
  std::atomic<std::uint8_t> bits_{0};
};

}  // namespace muniment::gateway
