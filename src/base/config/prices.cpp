#include "base/config/prices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json/json.hpp"

namespace muniment {
namespace {

constexpr std::size_t models_max = 1'000;
constexpr double tokens_a_price = 1e6;

Error bad_price(std::string_view model, std::string_view why) {
  return Error(Errc::invalid_argument,
               fmt::format("prices.{}: {}. Write input = 2.5 and output = 10, in USD per million "
                           "tokens, and cached_input where it differs",
                           json::quote(model), why));
}

Result<Price> price_of(std::string_view model, const json::Value& value) {
  if (!value.is(json::Kind::object)) return bad_price(model, "it is not a table");
  Price price;
  bool has_input = false, has_output = false;
  for (const json::Value member : value) {
    const std::string name = member.key();
    if (name != "input" && name != "output" && name != "cached_input")
      return bad_price(model,
                       fmt::format("unknown key {}; other settings precede the first [table]", json::quote(name)));
    const auto number = member.as_double();
    if (!number || !std::isfinite(*number) || *number < 0)
      return bad_price(model, name + " is not a number of at least 0");
    if (name == "input") {
      price.input = *number;
      has_input = true;
    } else if (name == "output") {
      price.output = *number;
      has_output = true;
    } else {
      price.cached_input = *number;
    }
  }
  if (!has_input || !has_output) return bad_price(model, has_input ? "output is missing" : "input is missing");
  return price;
}

}  // namespace

Result<Prices> parse_prices(std::string_view text) {
  Prices prices;
  if (text.empty()) return prices;
  const auto parsed = json::parse(text);
  if (!parsed || !parsed->root().is(json::Kind::object))
    return Error(Errc::invalid_argument, "prices: give a table for each model: [prices.\"gpt-4o\"]");
  if (parsed->root().size() > models_max)
    return Error(Errc::invalid_argument, fmt::format("prices: {} models, limit {}", parsed->root().size(), models_max));
  for (const json::Value member : parsed->root()) {
    ASSIGN_OR_RETURN(const Price price, price_of(member.key(), member));
    prices.emplace(member.key(), price);
  }
  return prices;
}

double cost_of(const Price& price, std::int64_t input_tokens, std::int64_t cached_tokens, std::int64_t output_tokens) {
  const auto cached =
      static_cast<double>(std::clamp<std::int64_t>(cached_tokens, 0, std::max<std::int64_t>(input_tokens, 0)));
  const double fresh = static_cast<double>(std::max<std::int64_t>(input_tokens, 0)) - cached;
  const auto out = static_cast<double>(std::max<std::int64_t>(output_tokens, 0));
  return (fresh * price.input + cached * price.cached_input.value_or(price.input) + out * price.output) /
         tokens_a_price;
}

}  // namespace muniment
