// Reads the price list. A separate file, because a program that estimates nothing contains no list.
#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/config/prices.hpp"
#include "base/files/file.hpp"
#include "base/json/json.hpp"

namespace muniment {
namespace {

constexpr std::size_t list_bytes_max = std::size_t{1} << 20;
constexpr std::string_view no_list = "none";

constexpr std::string_view program_list =
#include "base/price_list.inc"
    ;

bool is_date(const std::string& text) { return text.size() == 10 && parse_time(text + "T00:00:00Z").has_value(); }

Error bad_list(std::string_view why) {
  return Error(
      Errc::invalid_argument,
      fmt::format(
          R"({}. Write {{"date": "2026-11-30", "models": {{"gpt-4o": {{"input": 2.5, "output": 10}}}}}}, in USD per million tokens)",
          why));
}

}  // namespace

Result<PriceList> parse_price_list(std::string_view text) {
  const auto parsed = json::parse(text);
  if (!parsed || !parsed->root().is(json::Kind::object)) return bad_list("the file is not a JSON object");
  PriceList list;
  for (const json::Value member : parsed->root()) {
    if (member.key() == "date") {
      list.date = member.string_or("");
    } else if (member.key() == "models") {
      ASSIGN_OR_RETURN(list.models, parse_prices(member.source()));
    } else {
      return bad_list("unknown key " + json::quote(member.key()));
    }
  }
  if (!is_date(list.date)) return bad_list("date is missing or not a day");
  if (list.models.empty()) return bad_list("models is missing or empty");
  return list;
}

Result<PriceList> read_price_list(const std::string& path, std::string_view prices) {
  PriceList list;
  if (path.empty()) {
    ASSIGN_OR_RETURN(list, parse_price_list(program_list));
  } else if (path != no_list) {
    auto text = read_file(path, list_bytes_max);
    if (!text) return std::move(text).error().within("price_list");
    auto read = parse_price_list(*text);
    if (!read) return std::move(read).error().within("price_list " + path);
    list = *std::move(read);
  }
  ASSIGN_OR_RETURN(const Prices replaced, parse_prices(prices));
  for (const auto& [model, price] : replaced) list.models.insert_or_assign(model, price);
  return list;
}

}  // namespace muniment
