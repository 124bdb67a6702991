#include "cli/connect/late_followers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/text.hpp"

namespace muniment::cli {
namespace {

constexpr std::int64_t late_us = 5'000'000;  // a follower that keeps up reads an event within milliseconds

constexpr std::pair<std::string_view, std::string_view> effects[] = {
    {"document", "queries do not find newer documents"},
    {"pointer", "newer pointers are looked up in the log, which takes longer"},
    {"publisher", "no checkpoint covers newer events"},
    {"report", "the views of schema report and the times in run list are outdated"},
    {"run", "run list and its statuses are outdated"},
    {"search", "queries do not find newer passages"},
    {"snapshot", "rehydrate applies more events, which takes longer"},
};

std::map<std::string, std::int64_t> positions_in(const json::Value& status) {
  std::map<std::string, std::int64_t> next;
  for (const json::Value follower : status["followers"]) next[follower.key()] = follower.as_int().value_or(0);
  // The publisher stores its position once a minute; the checkpoint has its current position. A log without its private
  // key publishes nothing, so that its publisher is not late.
  const json::Value checkpoint = status["checkpoint"];
  if (checkpoint["signed_before"] || is_read_only(status))
    next.erase("publisher");
  else if (const auto published = checkpoint["size"].as_int())
    next["publisher"] = *published;
  return next;
}

// Returns the time of the event with this seq if the caller may read it.
std::optional<Time> recorded_at(Client& client, std::int64_t seq) {
  const std::string params =
      fmt::format(R"({{"from_seq":{},"limit":1,"fields":["seq","recorded_at"],"_meta":{{"deadline_ms":2000}}}})", seq);
  const auto page = client.call("event.list", params);
  if (!page || page->result()["events"].size() == 0) return std::nullopt;
  const json::Value event = *page->result()["events"].begin();
  return event["seq"].as_int() == seq ? parse_time(event["recorded_at"].string_or("")) : std::nullopt;
}

}  // namespace

bool is_read_only(const json::Value& status) {
  for (const json::Value item : status["degraded"]) {
    if (item.string_or("").find("--continue-restored") != std::string::npos) return true;
  }
  return false;
}

std::vector<LateFollower> late_followers(Client& client, const json::Value& status, Time now) {
  const std::int64_t size = status["log"]["size"].as_int().value_or(0);
  const Time started = parse_time(status["started_at"].string_or("")).value_or(Time{});
  std::vector<LateFollower> late;
  std::map<std::int64_t, std::optional<Time>> times;  // times by seq, because many followers wait at the same event
  for (const auto& [name, next] : positions_in(status)) {
    if (next >= size) continue;
    if (!times.contains(next)) times[next] = recorded_at(client, next);
    std::optional<Time> since = times[next];
    if (since) since = std::max(*since, started);  // a daemon that was stopped does not lag
    if (!since || now.micros - since->micros >= late_us) late.push_back({name, size - next, since});
  }
  std::ranges::stable_sort(late, std::greater(), &LateFollower::events);
  return late;
}

std::string_view effect_of(std::string_view follower) {
  const auto* const found = std::ranges::find_if(effects, [&](const auto& row) { return row.first == follower; });
  return found == std::end(effects) ? "its table is outdated" : found->second;
}

std::string explained(const LateFollower& late, Time now) {
  std::string text = fmt::format("{} by {}", escape_for_terminal(late.name), many(late.events, "event", "events"));
  if (late.since) {
    text += fmt::format(" since {} ({})", format_time(*late.since).substr(0, 19) + "Z",
                        human_duration(std::max<std::int64_t>(now.micros - late.since->micros, 0)));
  }
  return text + fmt::format(": {}. It catches up by itself; if the number does not fall: muniment doctor",
                            effect_of(late.name));
}

}  // namespace muniment::cli
