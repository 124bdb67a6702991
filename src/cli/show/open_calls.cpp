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
  open_[id] = {fit(preview(summary_of(event), 4 * label_columns), label_columns), at};
}

CallResult OpenCalls::end(const json::Value& event, std::optional<Time> at) {
  CallResult result;
  result.took_us = event["body"]["duration_us"].as_int();
  const auto estimate = estimates_.usd.find(event["seq"].as_int().value_or(-1));
  if (estimate != estimates_.usd.end()) result.usd = estimate->second;
  const auto found = open_.find(call_of(event));
  if (found == open_.end()) return result;
  const Call& call = found->second;
  result.call = label_of(found->first, call);
  if (!result.took_us && call.at && at && *call.at < *at) result.took_us = at->micros - call.at->micros;
  open_.erase(found);
  return result;
}

// Calls with equal descriptions are distinguished by id.
std::string OpenCalls::label_of(const std::string& id, const Call& call) const {
  const auto same = std::ranges::count_if(open_, [&](const auto& other) { return other.second.label == call.label; });
  return same > 1 ? call.label + " [" + id + "]" : call.label;
}

}  // namespace muniment::cli
