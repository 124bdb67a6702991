// Reads the costs of model answers, which the daemon computes, and formats costs for reading.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/json/json.hpp"
#include "client/connect/client.hpp"

namespace muniment::cli {

// Estimates of costs that were not recorded.
struct Estimates {
  std::map<std::int64_t, double> usd;  // key: seq of the model.answered event
  std::string price_list;              // version of the prices; empty: no estimate
};

// Returns the estimates of a run; empty if the daemon cannot compute them.
Estimates estimates_of(Client& client, const std::string& run_id);

// Formats "≈0.0075 USD": an estimate is marked, since it was not recorded.
std::string estimate_text(double usd);

// Formats the member `cost` of a run; empty if the cost is unknown.
std::string cost_text(const json::Value& cost);

}  // namespace muniment::cli
