// What an answer that comes before a request's work is done may say of it: the loop answers when the deadline passes or
// the client goes, whatever a worker is doing. Without it the answer could not say that nothing was written, and be
// right.
#pragma once

#include <atomic>
#include <cstdint>

namespace muniment::gateway {

class Standing {
 public:
  // From any thread, before something is written that stays. False: the request was answered, and as one that wrote
  // nothing; then nothing may be written any more.
  bool begin_writing() { return begin(writing); }
  // The same for what is written otherwise than by the request's append: then an error of its work does not say that
  // nothing was.
  bool begin_writing_itself() { return begin(writing | itself); }
  bool wrote_itself() const { return (bits_.load(std::memory_order_acquire) & itself) != 0; }
  // Something of that is done for good: no error says any more that nothing was.
  void has_written() { bits_.fetch_or(done, std::memory_order_acq_rel); }
  bool is_written() const { return (bits_.load(std::memory_order_acquire) & done) != 0; }

  // The loop's: the request is answered. True: what it writes may land all the same.
  bool answer() { return (bits_.fetch_or(answered, std::memory_order_acq_rel) & writing) != 0; }

  // Answered as one that wrote nothing.
  bool over() const { return bits_.load(std::memory_order_acquire) == answered; }
  // Answered, and whatever is still done for it is done for nobody.
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
