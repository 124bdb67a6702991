// The setting `prices`: prices of models, by which the timeline of a run estimates costs that were not recorded.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace muniment {

// Prices in USD per million tokens.
struct Price {
  double input = 0;
  double output = 0;
  std::optional<double> cached_input;  // absent: equal to the price of other input tokens
};

// Prices by the name of the model.
using Prices = std::map<std::string, Price, std::less<>>;

// Parses {"gpt-4o": {"input": 2.5, "output": 10, "cached_input": 1.25}}. An empty text means no prices. Errors:
// invalid_argument.
Result<Prices> parse_prices(std::string_view json);

// Returns a cost in USD. `cached_tokens` are part of `input_tokens`.
double cost_of(const Price& price, std::int64_t input_tokens, std::int64_t cached_tokens, std::int64_t output_tokens);

}  // namespace muniment
