// Tracks the calls of a run without a result, to show with each result its call, its duration and its cost.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/json/json.hpp"
#include "cli/show/costs.hpp"

namespace muniment::cli {

bool is_call(std::string_view type);    // tool.called, model.called, command.started
bool is_result(std::string_view type);  // tool.returned, model.answered, command.ended

// Returns the id that a call and its result share; empty: none.
std::string call_of(const json::Value& event);

struct CallResult {
  std::string call;  // short description of the call; empty: not seen
  std::optional<std::int64_t> took_us;
  std::optional<double> usd;  // estimate of a cost that was not recorded
};

class OpenCalls {
 public:
  explicit OpenCalls(Estimates estimates) : estimates_(std::move(estimates)) {}

  // Follows the beginning of a call. `at` is the time of the event, if known.
  void begin(const json::Value& event, std::optional<Time> at);
  CallResult end(const json::Value& event, std::optional<Time> at);
  const std::string& price_list() const { return estimates_.price_list; }

 private:
  struct Call {
    std::string label;
    std::optional<Time> at;
  };
  std::string label_of(const std::string& id, const Call& call) const;

  const Estimates estimates_;
  std::map<std::string, Call> open_;  // key: call_id
};

}  // namespace muniment::cli
