// Decides when a search child is started again, and whether its indexes are discarded.
#include "retrieval/child/search/restart_pace.hpp"

#include <algorithm>

namespace muniment::retrieval {

namespace {

void forget_before(std::deque<Monotonic>& times, Monotonic first) {
  while (!times.empty() && times.front() < first) times.pop_front();
}

}  // namespace

bool RestartPace::must_empty(const Death& death, Monotonic now) {
  open_crashes_ = death.served || !death.crashed ? 0 : open_crashes_ + 1;
  if (death.served && death.crashed) crashes_.push_back(now);
  forget_before(crashes_, now - policy_.crash_window);
  forget_before(emptied_, now - policy_.empty_interval);
  const bool wanted =
      open_crashes_ >= policy_.open_crashes_max || static_cast<int>(crashes_.size()) >= policy_.crashes_max;
  if (!wanted || !emptied_.empty()) return false;
  emptied_.push_back(now);
  crashes_.clear();
  open_crashes_ = 0;
  return true;
}

RestartPace::Verdict RestartPace::after(const Death& death, Monotonic now) {
  Verdict verdict;
  verdict.empty_first = must_empty(death, now);
  failed_starts_ = death.served ? 0 : failed_starts_ + 1;
  restarts_.push_back(now);
  forget_before(restarts_, now - policy_.storm_window);
  const bool storm = static_cast<int>(restarts_.size()) > policy_.storm;
  if (storm || (failed_starts_ >= policy_.failed_starts_max && !verdict.empty_first)) {
    if (storm) restarts_.clear();
    verdict.wait = policy_.give_up_for;
    verdict.give_up = true;
    return verdict;
  }
  if (credit_ < 0)
    credit_ = policy_.burst;
  else
    credit_ =
        std::min<double>(policy_.burst, credit_ + std::chrono::duration<double>(now - credited_at_) / policy_.interval);
  credited_at_ = now;
  if (credit_ >= 1)
    credit_ -= 1;
  else
    verdict.wait = policy_.interval;
  return verdict;
}

}  // namespace muniment::retrieval
