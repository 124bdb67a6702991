// The pace at which a child that dies is started again: normally at once, slower if it keeps dying, and with a pause if
// it never serves. During the pause searches are refused with the reason instead of waiting for their deadlines. Pure:
// the caller supplies the time.
#pragma once

#include <cstdint>
#include <deque>

#include "base/clock.hpp"

namespace muniment::retrieval {

struct RestartPolicy {
  int burst = 20;                           // restarts in a row without a wait
  std::chrono::milliseconds interval{500};  // time that earns one more of them
  int storm = 100;                          // restarts within `storm_window` that lead to a pause
  std::chrono::milliseconds storm_window{60'000};
  int failed_starts_max = 3;                      // starts in a row without serving that lead to a pause
  std::chrono::milliseconds give_up_for{10'000};  // length of the pause
  int open_crashes_max = 2;  // crashes in a row while opening the indexes after which these are discarded
  int crashes_max = 6;       // crashes within `crash_window` while serving, likewise
  std::chrono::milliseconds crash_window{600'000};
  std::chrono::milliseconds empty_interval{3'600'000};  // minimum time between two discards
};

class RestartPace {
 public:
  explicit RestartPace(const RestartPolicy& policy) : policy_(policy) {}

  struct Death {
    bool served = false;        // it had opened its indexes
    bool crashed = false;       // by a signal of a fault: neither stopped nor killed from outside
    bool says_damaged = false;  // it detected the damage itself, and empties that part at its next start
  };
  struct Verdict {
    std::chrono::milliseconds wait{0};
    bool give_up = false;      // refuse searches during the wait
    bool empty_first = false;  // the next child discards its indexes
  };
  Verdict after(const Death& death, Monotonic now);

 private:
  bool must_empty(const Death& death, Monotonic now);

  const RestartPolicy policy_;
  std::deque<Monotonic> restarts_;  // within storm_window
  std::deque<Monotonic> crashes_;   // within crash_window
  std::deque<Monotonic> emptied_;
  int failed_starts_ = 0;
  int open_crashes_ = 0;
  double credit_ = -1;  // restarts without a wait; below 0: not begun
  Monotonic credited_at_{};
};

}  // namespace muniment::retrieval
