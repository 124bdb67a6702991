#include "cli/show/open_calls.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "cli/show/describe.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t open_calls_kept_max = 1'000;  // limit for a run that never completes its calls
constexpr std::size_t label_columns = 40;           // columns of the description of a call

}  // namespace

bool is_call(std::string_view type) {
  return type == "tool.called" || type == "model.called" || type == "command.started";
}

bool is_result(std::string_view type) {
  return type == "tool.returned" || type == "model.answered" || type == "command.ended";
}

std::string call_of(const json::Value& event) {
  const json::Value body = event["body"];
  return (body["call_id"] ? body["call_id"] : body["command_id"]).string_or("");
}

void OpenCalls::begin(const json::Value& event, std::optional<Time> at) {
  const std::string id = call_of(event);
  if (id.empty() || (open_.size() >= open_calls_kept_max && !open_.contains(id))) return;
  open_[id] = {fit(preview(summary_of(event), 4 * label_columns), label_columns), event["body"]["model"].string_or(""),
               at};
}

CallResult OpenCalls::end(const json::Value& event, std::optional<Time> at) {
  const json::Value body = event["body"];
  CallResult result;
  result.took_us = body["duration_us"].as_int();
  const auto found = open_.find(call_of(event));
  if (found == open_.end()) {
    result.usd = cost(body, {});
    return result;
  }
  const Call& call = found->second;
  result.call = label_of(found->first, call);
  result.usd = cost(body, call.model);
  if (!result.took_us && call.at && at && *call.at < *at) result.took_us = at->micros - call.at->micros;
  open_.erase(found);
  return result;
}

// Calls with equal descriptions are distinguished by id.
std::string OpenCalls::label_of(const std::string& id, const Call& call) const {
  const auto same = std::ranges::count_if(open_, [&](const auto& other) { return other.second.label == call.label; });
  return same > 1 ? call.label + " [" + id + "]" : call.label;
}

std::optional<double> OpenCalls::cost(const json::Value& body, const std::string& asked_model) const {
  const json::Value usage = body["usage"];
  if (prices_.empty() || !usage || usage["cost"]) return std::nullopt;
  const auto input = usage["input_tokens"].as_int();
  const auto output = usage["output_tokens"].as_int();
  if (!input && !output) return std::nullopt;
  auto price = prices_.find(body["model"].string_or(""));
  if (price == prices_.end()) price = prices_.find(asked_model);
  if (price == prices_.end()) return std::nullopt;
  return cost_of(price->second, input.value_or(0), usage["cached_input_tokens"].as_int().value_or(0),
                 output.value_or(0));
}

}  // namespace muniment::cli
