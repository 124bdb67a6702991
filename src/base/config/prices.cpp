#include "base/config/prices.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/crypto/sha256.hpp"
#include "base/json/json.hpp"

namespace muniment {
namespace {

constexpr std::size_t models_max = 1'000;
constexpr std::size_t model_bytes_max = 1'024;
constexpr std::size_t version_digits = 12;

Error bad_price(std::string_view model, std::string_view why) {
  return Error(Errc::invalid_argument,
               fmt::format("prices.{}: {}. Write input = 2.5 and output = 10, in USD per million "
                           "tokens, and cached_input and cache_write where they differ",
                           json::quote(model), why));
}

Result<Price> price_of(std::string_view model, const json::Value& value) {
  if (model.empty() || model.size() > model_bytes_max)
    return bad_price(model.substr(0, 40), fmt::format("the name of a model has 1 to {} bytes", model_bytes_max));
  if (!value.is(json::Kind::object)) return bad_price(model, "it is not a table");
  std::optional<double> input, output;
  Price price;
  for (const json::Value member : value) {
    const std::string name = member.key();
    std::optional<double>* const place = name == "input"          ? &input
                                         : name == "output"       ? &output
                                         : name == "cached_input" ? &price.cached_input
                                         : name == "cache_write"  ? &price.cache_write
                                                                  : nullptr;
    if (place == nullptr)
      return bad_price(model,
                       fmt::format("unknown key {}; other settings precede the first [table]", json::quote(name)));
    const auto number = member.as_double();
    if (!number || !std::isfinite(*number) || *number < 0)
      return bad_price(model, name + " is not a number of at least 0");
    *place = *number;
  }
  if (!input || !output) return bad_price(model, input ? "output is missing" : "input is missing");
  price.input = *input;
  price.output = *output;
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

std::string version_of(const Prices& prices) {
  json::Writer canonical;
  canonical.begin_object();
  for (const auto& [model, price] : prices) {
    canonical.key(model).begin_object().member("input", price.input).member("output", price.output);
    if (price.cached_input) canonical.member("cached_input", *price.cached_input);
    if (price.cache_write) canonical.member("cache_write", *price.cache_write);
    canonical.end_object();
  }
  canonical.end_object();
  return to_hex(sha256(canonical.text())).substr(0, version_digits);
}

}  // namespace muniment
