// Synchronizes appends that refer to other data with the erasure of that data. A writer passes the gate before it reads
// the referenced data. An erasure closes the gate before it searches for copies and opens it when they are erased. The
// append thread returns requests for retry that passed earlier but are not numbered yet; they then read only the
// remaining data. Archiving also closes the gate, while it checks legal holds and announces itself.
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
  // Call before reading; the result is AppendRequest::erasures_seen. Waits while the gate is closed, unless too many
  // threads wait. Errors: unavailable at the deadline, or immediately if too many wait.
  Result<std::int64_t> pass(Deadline deadline);
  // Limits the number of waiting threads, because more would block requests that the erasure does not concern.
  void set_waiting_max(std::size_t most);

  // While it exists, the append thread numbers events, and the gate cannot be closed.
  class Numbering {
   public:
    explicit Numbering(ErasureGate& gate) : gate_(gate), lock_(gate.mutex_) {}
    ~Numbering() { gate_.numbered_ = next_seq; }
    Numbering(const Numbering&) = delete;

    std::int64_t erasures() const { return gate_.erasures_; }
    std::int64_t next_seq = 0;  // position of the next event; set it before destruction

   private:
    ErasureGate& gate_;
    const std::lock_guard<std::mutex> lock_;
  };

  // The gate is closed while it exists.
  class Closed {
   public:
    explicit Closed(ErasureGate& gate) : gate_(gate) {}
    ~Closed();
    Closed(const Closed&) = delete;

   private:
    ErasureGate& gate_;
  };

  // Closes the gate; only one closer at a time. `doing` names the operation, for the error of waiting threads. Waits
  // for events numbered earlier, which may refer to the erased data, until their outcome is known. Errors: unavailable
  // at the deadline; the gate is then open.
  Result<std::unique_ptr<Closed>> close(const Tail& tail, Deadline deadline, std::string_view doing);

 private:
  std::int64_t numbered() const;  // every position below is committed or in flight

  mutable std::mutex mutex_;
  std::condition_variable opened_;
  std::int64_t erasures_ = 0;  // number of erasures that closed it
  std::int64_t numbered_ = 0;
  bool closed_ = false;
  std::string_view doing_;
  std::size_t waiting_ = 0, waiting_max_ = 1;
};

}  // namespace muniment::store
