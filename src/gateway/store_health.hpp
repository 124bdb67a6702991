// Whether Postgres answers, as last seen by whoever asked it. Health must be told when nothing
// answers, so it is remembered here and not asked for.
#pragma once

#include <mutex>
#include <string>

#include "base/clock.hpp"

namespace muniment::gateway {

class StoreHealth {
 public:
  struct State {
    bool up = true;
    Time since;          // zero: since the daemon started
    std::string reason;  // what was said when it went down
  };

  // From any thread, after every statement that matters; only a change is remembered.
  void report(bool up, Time now, std::string_view reason = {}) {
    std::lock_guard lock(mutex_);
    if (state_.up == up) return;
    state_ = {up, now, up ? std::string() : std::string(reason)};
  }

  State state() const {
    std::lock_guard lock(mutex_);
    return state_;
  }

 private:
  mutable std::mutex mutex_;
  State state_;
};

}  // namespace muniment::gateway
