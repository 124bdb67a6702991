// What the daemon says of itself. All of these answer when Postgres does not.
#include <algorithm>
#include <fmt/format.h>

#include "audit/publisher.hpp"
#include "audit/submitter.hpp"
#include "base/config.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/methods/server_state.hpp"
#include "gateway/services.hpp"
#include "retrieval/service.hpp"

namespace muniment::gateway::methods {

// What is known of Postgres without asking it: by the append thread and by whoever read last.
StoreHealth::State database_state(Services& services, const store::LogStatus& log) {
  StoreHealth::State state = services.database.state();
  if (!log.away.empty() && state.up) {
    state.up = false;
    state.reason = log.away;
    state.since = log.away_since;
  }
  if (state.since.micros == 0) state.since = services.started;
  return state;
}

std::vector<std::string> degradations(Services& services, const StoreHealth::State& database) {
  std::vector<std::string> found;
  if (!database.up) {
    found.push_back("database down since " + format_time(database.since) + ": " + database.reason);
  }
  if (services.files.below_reserve()) {
    const store::DiskSpace disk = services.files.disk();
    found.push_back(fmt::format("disk below its reserve: {} bytes free, {} must stay free; artifacts are refused",
                                disk.free_bytes, disk.reserve_bytes));
  }
  const std::string refused = services.appender.status().refused;
  if (!refused.empty()) found.push_back(refused);
  if (const std::string problem = services.publisher.problem(); !problem.empty() && problem != refused) found.push_back("checkpoints: " + problem);
  if (const std::string problem = services.retrieval.documents().problem(); !problem.empty()) found.push_back("documents: " + problem);
  if (const std::string problem = services.retrieval.indexer().problem(); !problem.empty()) found.push_back("search: " + problem);
  if (const std::string problem = services.retrieval.search().health().embedding_problem; !problem.empty()) {
    found.push_back("search: http: " + problem);
  }
  for (const std::string& what : services.retrieval.indexer().degraded()) found.push_back("search: " + what);
  if (const auto* shared = services.retrieval.shared_cache(); shared && !shared->problem().empty()) found.push_back("shared cache: " + shared->problem());
  for (const audit::KeeperStatus& keeper : services.submitter.status()) {
    if (!keeper.problem.empty()) found.push_back("checkpoints outside, " + keeper.name + ": " + keeper.problem);
  }
  return found;
}

namespace {

constexpr std::int64_t micros_per_second = 1'000'000;

using Positions = std::vector<std::pair<std::string, std::int64_t>>;

void write_status(json::Writer& out, Services& services, const store::LogStatus& log) {
  const Time now = services.clock.now();
  out.member("version", MUNIMENT_VERSION)
      .member("database", without_password(services.database_uri))
      .member("socket", services.socket_path)
      .member("data_dir", services.data_dir)
      .member("started_at", format_time(services.started))
      .member("uptime_s", (now.micros - services.started.micros) / micros_per_second)
      .key("log")
      .begin_object()
      .member("log_id", log.log_id.text())
      .member("size", log.size)
      .member("root", to_hex(log.root))
      .member("epoch", log.epoch)
      .end_object();
  const audit::Published newest = services.publisher.newest();
  out.key("checkpoint")
      .begin_object()
      .member("origin", newest.checkpoint.origin)
      .member("size", newest.checkpoint.size)
      .member("signed", !newest.note.empty())
      .end_object();
  const store::DiskSpace disk = services.files.disk();
  out.key("disk")
      .begin_object()
      .member("free_bytes", disk.free_bytes)
      .member("total_bytes", disk.total_bytes)
      .member("reserve_bytes", disk.reserve_bytes)
      .end_object();
}

Reply status_reply(Services& services, const store::LogStatus& log, const Positions& followers,
                   const std::vector<std::string>& degraded) {
  json::Writer out;
  out.begin_object();
  write_status(out, services, log);
  out.key("followers").begin_object();
  for (const auto& [name, position] : followers) out.member(name, position);
  out.member("search", std::max<std::int64_t>(services.retrieval.indexer().next_seq(), 0));  // it was not asked yet: nothing is known to be in it
  out.end_object().key("degraded").begin_array();
  for (const std::string& text : degraded) out.string(text);
  out.end_array().end_object();
  return {std::move(out).text(), {}};
}

}  // namespace

Result<Answer> server_health(Call& call) {
  const StoreHealth::State database = database_state(call.services, call.services.appender.status());
  json::Writer out;
  out.begin_object()
      .member("ok", database.up)
      .member("database", database.up ? "up" : "down")
      .member("since", format_time(database.since));
  if (!database.reason.empty()) out.member("reason", database.reason);
  out.end_object();
  return Reply{std::move(out).text(), {}};
}

Result<Answer> server_status(Call& call) {
  const store::LogStatus log = call.services.appender.status();
  const StoreHealth::State database = database_state(call.services, log);
  std::vector<std::string> degraded = degradations(call.services, database);
  // The followers' positions are in Postgres: not worth waiting for when it is known to be away.
  if (!database.up) return status_reply(call.services, log, {}, degraded);
  if (!call.reader) return NeedsWorker{};
  auto followers = call.reader->follower_positions();
  if (!followers) {
    degraded.push_back("database: " + followers.error().message);
    return status_reply(call.services, log, {}, degraded);
  }
  return status_reply(call.services, log, *followers, degraded);
}

}  // namespace muniment::gateway::methods
