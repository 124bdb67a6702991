// Counts refused requests by minute, actor, reason and run.
#include "gateway/request/refusals.hpp"

#include "base/json/json.hpp"
#include "base/limits.hpp"

namespace muniment::gateway {
namespace {

constexpr std::int64_t minute_us = 60'000'000;
constexpr std::size_t methods_named_max = 100;

std::string body_of(std::int64_t minute, const std::string& actor, const std::string& reason, const std::string& run_id,
                    std::int64_t requests, const std::set<std::string, std::less<>>& methods) {
  json::Writer out;
  out.begin_object()
      .member("principal", actor)
      .member("minute", format_time({minute * minute_us}))
      .member("count", requests)
      .member("reason", reason);
  if (!run_id.empty()) out.member("run_id", run_id);
  out.key("methods").begin_array();
  for (const std::string& method : methods) out.string(method);
  return std::move(out.end_array().end_object()).text();
}

}  // namespace

void Refusals::note(const std::string& actor, std::string_view method, const Error& error, Time now) {
  const bool refused = error.code == Errc::denied || error.code == Errc::run_halted || error.hidden;
  if (!refused) return;
  const std::string reason(error.hidden ? name_of(Errc::denied) : name_of(error.code));
  const std::int64_t minute = now.micros / minute_us;
  const std::lock_guard lock(mutex_);
  Key key{minute, actor, reason, error.run_id};
  // Beyond this many distinct keys, refusals are counted without the run.
  if (counts_.size() >= limits::refusals_told_apart_max && !counts_.contains(key)) std::get<3>(key).clear();
  Count& count = counts_[std::move(key)];
  ++count.requests;
  if (!method.empty() && count.methods.size() < methods_named_max) count.methods.emplace(method);
}

std::vector<std::string> Refusals::take(Time now, bool all) {
  std::vector<std::string> bodies;
  const std::lock_guard lock(mutex_);
  const std::int64_t minute = now.micros / minute_us;
  for (auto entry = counts_.begin(); entry != counts_.end();) {
    const auto& [of, actor, reason, run_id] = entry->first;
    // A clock that was set back must not keep a count forever.
    if (!all && of == minute) {
      ++entry;
      continue;
    }
    bodies.push_back(body_of(of, actor, reason, run_id, entry->second.requests, entry->second.methods));
    entry = counts_.erase(entry);
  }
  return bodies;
}

}  // namespace muniment::gateway
