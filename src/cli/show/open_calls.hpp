// The calls of a run that have no result yet: what a result says only together with its call, which call it answers,
// how long that took, and what it cost.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/config/prices.hpp"
#include "base/json/json.hpp"

namespace muniment::cli {

bool is_call(std::string_view type);    // tool.called, model.called, command.started
bool is_result(std::string_view type);  // tool.returned, model.answered, command.ended

// The id that a call and its result share; empty: there is none.
std::string call_of(const json::Value& event);

struct CallResult {
  std::string call;  // what was called, in a few words; empty: not seen
  std::optional<std::int64_t> took_us;
  std::optional<double> usd;  // by the prices, where no cost was recorded
};

class OpenCalls {
 public:
  explicit OpenCalls(Prices prices) : prices_(std::move(prices)) {}

  // `at`: when it happened, where that is known.
  void begin(const json::Value& event, std::optional<Time> at);
  CallResult end(const json::Value& event, std::optional<Time> at);

 private:
  struct Call {
    std::string label;
    std::string model;
    std::optional<Time> at;
  };
  std::string label_of(const std::string& id, const Call& call) const;
  std::optional<double> cost(const json::Value& body, const std::string& asked_model) const;

  const Prices prices_;
  std::map<std::string, Call> open_;  // by call_id
};

}  // namespace muniment::cli
