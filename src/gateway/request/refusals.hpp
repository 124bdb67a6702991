// Counts refused requests: one event access.refused per actor, reason, run and minute, so that refusals are on record
// and cannot flood the log.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace muniment::gateway {

class Refusals {
 public:
  // Counts the error of a request if it is a refusal: denied, run_halted, or a not_found that hides a run of another
  // user. Any thread.
  void note(const std::string& actor, std::string_view method, const Error& error, Time now);

  // Takes the bodies of access.refused for the minutes that are over, or for all minutes.
  std::vector<std::string> take(Time now, bool all);

 private:
  using Key = std::tuple<std::int64_t, std::string, std::string, std::string>;  // minute, actor, reason, run
  struct Count {
    std::int64_t requests = 0;
    std::set<std::string, std::less<>> methods;
  };
  std::mutex mutex_;
  std::map<Key, Count> counts_;
};

}  // namespace muniment::gateway
