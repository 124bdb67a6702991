// Between what is recorded on what it refers to and the erasure of that. Whoever records something passes the gate
// before he reads what it will refer to; an erasure closes it before it looks for the copies, and opens it when they
// are gone. What passed before that and is not numbered yet is given back by the append thread: read again, it finds
// what is left. An archiving closes it, too, while it looks for holds and says what it does.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "store/append/tail.hpp"

namespace muniment::store {

class ErasureGate {
 public:
  // Before the reads: AppendRequest::erasures_seen. Waits while the gate is closed, where not too many do.
  // Errors: unavailable at the deadline, or at once.
  Result<std::int64_t> pass(Deadline deadline);
  // So many threads wait at the same time; more would keep others from what does not concern the erasure.
  void set_waiting_max(std::size_t most);

  // For as long as it lives the append thread numbers, and nobody closes the gate.
  class Numbering {
   public:
    explicit Numbering(ErasureGate& gate) : gate_(gate), lock_(gate.mutex_) {}
    ~Numbering() { gate_.numbered_ = next_seq; }
    Numbering(const Numbering&) = delete;

    std::int64_t erasures() const { return gate_.erasures_; }
    std::int64_t next_seq = 0;  // what the next event would get; to be set before it ends

   private:
    ErasureGate& gate_;
    const std::lock_guard<std::mutex> lock_;
  };

  // Closed for as long as it lives.
  class Closed {
   public:
    explicit Closed(ErasureGate& gate) : gate_(gate) {}
    ~Closed();
    Closed(const Closed&) = delete;

   private:
    ErasureGate& gate_;
  };

  // One at a time; `doing`: what becomes of something meanwhile, for those who wait. What was numbered before may refer
  // to what is erased: it is known by then whether it is in the log. Errors: unavailable at the deadline; it is open
  // then.
  Result<std::unique_ptr<Closed>> close(const Tail& tail, Deadline deadline, std::string_view doing);

 private:
  std::int64_t numbered() const;  // up to where: those below are committed, or on their way

  mutable std::mutex mutex_;
  std::condition_variable opened_;
  std::int64_t erasures_ = 0;  // that closed it
  std::int64_t numbered_ = 0;
  bool closed_ = false;
  std::string_view doing_;
  std::size_t waiting_ = 0, waiting_max_ = 1;
};

}  // namespace muniment::store
