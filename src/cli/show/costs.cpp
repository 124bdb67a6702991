#include "cli/show/costs.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "client/connect/pages.hpp"

namespace muniment::cli {
namespace {

constexpr std::string_view estimated_basis = "prices ";

std::string money(double amount, std::string_view currency) {
  return fmt::format("{:.{}f} {}", amount, amount < 1 ? 4 : 2, currency);
}

double number_of(const json::Value& text) { return std::strtod(text.string_or("0").c_str(), nullptr); }

}  // namespace

Estimates estimates_of(Client& client, const std::string& run_id) {
  Estimates estimates;
  const std::string params = fmt::format(R"({{"run_id":{},"limit":1000}})", json::quote(run_id));
  (void)each_item(client, "run.costs", params, "answers", [&](const json::Value& answer) -> Result<bool> {
    const std::string basis = answer["basis"].string_or("");
    if (!basis.starts_with(estimated_basis)) return true;
    estimates.price_list = basis.substr(estimated_basis.size());
    estimates.usd[answer["seq"].as_int().value_or(-1)] = number_of(answer["amount"]);
    return true;
  }).ok();
  return estimates;
}

std::string estimate_text(double usd) { return "≈" + money(usd, "USD"); }

std::string cost_text(const json::Value& cost) {
  if (!cost.is(json::Kind::object)) return "";
  std::string currency = cost["currency"].string_or("");
  if (!cost["amount"].is(json::Kind::string)) return currency;
  return (cost["estimated"] ? "≈" : "") + money(number_of(cost["amount"]), currency);
}

}  // namespace muniment::cli
