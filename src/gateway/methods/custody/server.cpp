// server.health and server.status: the state of the daemon. Both also answer while Postgres is unreachable.
#include <fmt/format.h>
#include <algorithm>

#include "audit/publisher.hpp"
#include "audit/witness/submitter.hpp"
#include "base/config/config.hpp"
#include "base/limits.hpp"
#include "gateway/methods/custody/server_state.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/services.hpp"
#include "retrieval/service.hpp"
#include "snapshot/snapshotter.hpp"
#include "store/tables/follower.hpp"
#include "webhook/sender.hpp"

namespace muniment::gateway::methods {
namespace {

// Reports followers and snapshots that make no progress, because the displayed data of runs is then outdated. Not
// checked while Postgres is unreachable, which is reported already.
void add_standstills(std::vector<std::string>& found, const Services& services, const store::LogStatus& log) {
  if (log.silent) return;
  for (const store::Follower* const follower : services.followers) {
    if (const std::string problem = follower->problem(); !problem.empty())
      found.push_back("table " + follower->name() + ": " + problem);
  }
  if (const std::string problem = services.snapshots.problem(); !problem.empty())
    found.push_back("snapshots: " + problem);
}

std::vector<webhook::WebhookStatus> webhooks_of(const Services& services) {
  return services.webhooks != nullptr ? services.webhooks->status() : std::vector<webhook::WebhookStatus>();
}

}  // namespace

std::vector<std::string> degradations(Services& services, const store::LogStatus& log) {
  std::vector<std::string> found;
  if (!log.away.empty()) {
    found.push_back((log.silent ? "database down since " : "no append has succeeded since ") + format_time(log.since) +
                    ": " + log.away);
  }
  if (services.files.below_reserve()) {
    const store::DiskSpace disk = services.files.disk();
    found.push_back(
        fmt::format("disk below its reserve: {} bytes free, {} must stay free; artifacts over 64 KiB are refused",
                    disk.free_bytes, disk.reserve_bytes));
  }
  if (!log.refused.empty()) found.push_back(log.refused);
  if (const std::string problem = services.publisher.problem(); !problem.empty() && problem != log.refused)
    found.push_back("checkpoints: " + problem);
  add_standstills(found, services, log);
  if (const std::string problem = services.retrieval.documents().problem(); !problem.empty())
    found.push_back("documents: " + problem);
  if (const std::string rebuilt = services.retrieval.documents().rebuilt(); !rebuilt.empty())
    found.push_back("documents: " + rebuilt);
  if (const std::string problem = services.retrieval.indexer().problem(); !problem.empty())
    found.push_back("search: " + problem);
  if (const std::string problem = services.retrieval.search().health().embedding_problem; !problem.empty()) {
    found.push_back("search: http: " + problem);
  }
  // A component that was never installed is only noted; it does not degrade the daemon.
  const std::vector<std::string> absent = services.retrieval.indexer().absent();
  for (const std::string& what : services.retrieval.indexer().degraded()) {
    if (std::ranges::find(absent, what) == absent.end()) found.push_back("search: " + what);
  }
  if (const auto* shared = services.retrieval.shared_cache(); shared && !shared->problem().empty())
    found.push_back("shared cache: " + shared->problem());
  for (const audit::KeeperStatus& keeper : services.submitter.status()) {
    if (!keeper.problem.empty()) found.push_back("checkpoints outside, " + keeper.name + ": " + keeper.problem);
  }
  for (const webhook::WebhookStatus& webhook : webhooks_of(services)) {
    if (!webhook.problem.empty() && webhook.problem != log.refused)
      found.push_back("webhook " + webhook.name + ": " + webhook.problem);
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
      .member("in_flight", log.in_flight)
      .end_object();
  if (!services.earlier.empty()) out.key("earlier_logs").begin_array();
  for (const auto& earlier : services.earlier) {
    out.begin_object()
        .member("log_no", int{earlier->place.log_no})
        .member("log_id", earlier->log_id.text())
        .member("size", earlier->size)
        .end_object();
  }
  if (!services.earlier.empty()) out.end_array();
  const audit::Published newest = services.publisher.newest();
  out.key("checkpoint")
      .begin_object()
      .member("origin", newest.checkpoint.origin)
      .member("size", newest.checkpoint.size)
      .member("signed", !newest.note.empty())
      .member("files_made_again", services.publisher.rewritten());
  if (const std::int64_t before = services.publisher.signed_before(); before > 0) out.member("signed_before", before);
  out.end_object();
  const store::DiskSpace disk = services.files.disk();
  out.key("disk")
      .begin_object()
      .member("free_bytes", disk.free_bytes)
      .member("total_bytes", disk.total_bytes)
      .member("reserve_bytes", disk.reserve_bytes)
      .end_object();
}

void write_webhooks(json::Writer& out, const Services& services, std::int64_t size) {
  const auto webhooks = webhooks_of(services);
  if (webhooks.empty()) return;
  out.key("webhooks").begin_array();
  for (const webhook::WebhookStatus& webhook : webhooks) {
    out.begin_object()
        .member("name", webhook.name)
        .member("url", webhook.url)
        .member("next_seq", webhook.next_seq)
        .member("behind", std::max<std::int64_t>(size - webhook.next_seq, 0))
        .member("delivered", webhook.delivered)
        .member("failed", webhook.failed)
        .member("skipped", webhook.skipped);
    if (!webhook.problem.empty()) out.member("problem", webhook.problem);
    if (webhook.next_attempt) out.member("next_attempt_at", format_time(*webhook.next_attempt));
    out.end_object();
  }
  out.end_array();
}

Reply status_reply(Services& services, const store::LogStatus& log, const Positions& followers,
                   const std::vector<std::string>& degraded) {
  json::Writer out;
  out.begin_object();
  write_status(out, services, log);
  out.key("followers").begin_object();
  // A webhook may have been removed from the configuration; write_webhooks reports the others.
  for (const auto& [name, position] : followers) {
    if (!name.starts_with(webhook::follower_prefix)) out.member(name, position);
  }
  out.member("search", std::max<std::int64_t>(services.retrieval.indexer().next_seq(),
                                              0));  // not queried yet
  out.end_object();
  write_webhooks(out, services, log.size);
  out.key("degraded").begin_array();
  for (const std::string& text : degraded) out.string(text);
  out.end_array().key("notes").begin_array();
  for (const std::string& what : services.retrieval.indexer().absent()) out.string("search: " + what);
  for (const std::string& what : services.retrieval.indexer().behind()) out.string("search: " + what);
  if (services.publisher.can_sign() && services.submitter.status().empty())
    out.string("no witness: an older copy of the database and the data folder together would not be detected");
  if (const std::string carrying = services.carrying ? services.carrying() : std::string(); !carrying.empty())
    out.string(carrying);
  out.end_array().end_object();
  return {std::move(out).text(), {}};
}

}  // namespace

// Reports the append thread's view of Postgres, which it checks every few seconds if there are no appends
// (store/append/append_thread.cpp).
Result<Answer> server_health(Call& call) {
  const store::LogStatus log = call.services.appender.status();
  const std::string& reason = log.refused.empty() ? log.away : log.refused;
  json::Writer out;
  out.begin_object()
      .member("ok", reason.empty())
      .member("database", log.silent ? "down" : "up")
      .member("since", format_time(log.since.micros == 0 ? call.services.started : log.since));
  if (!reason.empty()) out.member("reason", reason);
  out.end_object();
  return Reply{std::move(out).text(), {}};
}

Result<Answer> server_status(Call& call) {
  const store::LogStatus log = call.services.appender.status();
  std::vector<std::string> degraded = degradations(call.services, log);
  // The followers' positions are stored in Postgres: skip them while it is known to be unreachable.
  if (log.silent) return status_reply(call.services, log, {}, degraded);
  if (call.without_database) {
    degraded.push_back(fmt::format("database: no answer within {} ms", limits::status_database_ms_max));
    return status_reply(call.services, log, {}, degraded);
  }
  if (!call.reader) return NeedsWorker{};
  auto followers = call.reader->follower_positions();
  if (!followers) {
    degraded.push_back("database: " + followers.error().message);
    return status_reply(call.services, log, {}, degraded);
  }
  return status_reply(call.services, log, *followers, degraded);
}

}  // namespace muniment::gateway::methods
