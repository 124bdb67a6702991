// The settings `prices` and `price_list`: prices of models, by which costs that were not recorded are estimated
// (migrations/0026_prices.sql).
#pragma once

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
  std::optional<double> cached_input;  // absent: equal to the price of other input tokens; the same for the next member
  std::optional<double> cache_write;
};

// Prices by the name of the model.
using Prices = std::map<std::string, Price, std::less<>>;

// Parses {"gpt-4o": {"input": 2.5, "output": 10, "cached_input": 1.25, "cache_write": 3}}. An empty text means no
// prices. Errors: invalid_argument.
Result<Prices> parse_prices(std::string_view json);

// The list that the daemon uses.
struct PriceList {
  std::string date;  // the day of the file, 2026-11-30; empty: there is no file
  Prices models;
};

// Parses a file: {"date": "2026-11-30", "models": {…}}, the models as in parse_prices. Errors: invalid_argument.
Result<PriceList> parse_price_list(std::string_view json);

// Reads the file that the setting price_list names (empty: the list of this program; "none": no list). The prices of
// the setting `prices` replace those of the same models. Errors: those of the file, and of parse_prices.
Result<PriceList> read_price_list(const std::string& price_list, std::string_view prices);

// Returns the version of a list: the first 12 digits of the SHA-256 of its canonical JSON, which parse_prices accepts.
std::string version_of(const Prices& prices);

}  // namespace muniment
