// How fast a child that dies is started again. At once, as a rule; slower when it keeps dying; and when
// it does nothing else, not for a while, in which searches are refused with the reason rather than left
// to wait for their deadlines. Pure: the caller has the clock.
#pragma once

#include <cstdint>
#include <deque>

#include "base/clock.hpp"

namespace muniment::retrieval {

struct RestartPolicy {
  int burst = 20;                           // restarts in a row that cost no wait …
  std::chrono::milliseconds interval{500};  // … and how often one more is earned
  int storm = 100;                          // so many within `storm_window`, or …
  std::chrono::milliseconds storm_window{60'000};
  int failed_starts_max = 3;                      // … so many in a row that never served: it is given up …
  std::chrono::milliseconds give_up_for{10'000};  // … for so long
  int open_crashes_max = 2;                       // so many crashes in a row while its indexes were opened, or …
  int crashes_max = 6;                            // … so many within `crash_window` while it served,
  std::chrono::milliseconds crash_window{600'000};
  std::chrono::milliseconds empty_interval{3'600'000};  // and they are thrown away, once in so long
};

class RestartPace {
 public:
  explicit RestartPace(const RestartPolicy& policy) : policy_(policy) {}

  struct Death {
    bool served = false;        // it had opened its indexes
    bool crashed = false;       // by a signal that a fault raises: neither stopped nor killed from outside
    bool says_damaged = false;  // it found the damage itself, and empties that part at its next start
  };
  struct Verdict {
    std::chrono::milliseconds wait{0};
    bool give_up = false;      // refuse searches during the wait
    bool empty_first = false;  // the next child throws its indexes away
  };
  Verdict after(const Death& death, Monotonic now);

 private:
  bool must_empty(const Death& death, Monotonic now);

  const RestartPolicy policy_;
  std::deque<Monotonic> restarts_;  // within the storm's window
  std::deque<Monotonic> crashes_;   // within theirs
  std::deque<Monotonic> emptied_;
  int failed_starts_ = 0;
  int open_crashes_ = 0;
  double credit_ = -1;  // restarts without a wait; below 0: not begun
  Monotonic credited_at_{};
};

}  // namespace muniment::retrieval
