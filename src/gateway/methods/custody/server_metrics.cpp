// server.metrics: the daemon's counters in Prometheus' text format. docs/operations.md describes each.
#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "audit/publisher.hpp"
#include "audit/witness/submitter.hpp"
#include "base/files/file.hpp"
#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "base/metrics.hpp"
#include "gateway/methods/custody/server_state.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/services.hpp"
#include "retrieval/service.hpp"
#include "webhook/sender.hpp"

namespace muniment::gateway::methods {
namespace {

using metrics::Text;
using metrics::Type;

constexpr std::int64_t micros_a_second = 1'000'000;
// Part of a connection's time that the sums of tables may use: one in fifty.
constexpr int totals_share = 50;

void write_log(Text& text, Services& services, const store::LogStatus& log) {
  text.counter("log_events_total", "Events in the log.", log.size);
  const audit::Published newest = services.publisher.newest();
  text.gauge("log_published_events", "Events that the newest published tree covers.", newest.checkpoint.size);
  text.gauge("log_signed_events", "Events that the newest signed checkpoint covers; 0 without a key.",
             newest.note.empty() ? 0 : newest.checkpoint.size);
  text.family("keeper_signed_events", Type::gauge,
              "Events of the newest checkpoint that a witness, folder or bucket holds.");
  for (const audit::KeeperStatus& keeper : services.submitter.status())
    text.sample(keeper.size, metrics::label("keeper", keeper.name));
  text.gauge("append_queue_events", "Events that wait for a commit.", log.queued_events);
  text.gauge("append_queue_bytes", "Bytes of the bodies of events that wait for a commit.", log.queued_bytes);
  text.gauge("append_queue_events_max", "Limit of waiting events: further appends are refused with over_budget.",
             static_cast<std::int64_t>(limits::append_queue_events_max));
  const metrics::Process& process = metrics::process();
  text.seconds("append_seconds", "Time from the line of an appending request to its receipt.", process.append_seconds);
  text.seconds("append_wait_seconds", "Time that an append waits in the queue for the append thread.",
               process.append_wait_seconds);
  text.seconds("append_commit_seconds", "Time of one transaction of the append thread.", process.append_commit_seconds);
  text.family("append_batch_events", Type::histogram, "Events in one transaction.");
  text.histogram(process.append_batch_events, 1);
  text.gauge("runs_in_memory", "Runs whose head is held in memory.", static_cast<std::int64_t>(services.runs.size()));
}

void write_followers(Text& text, Services& services, const store::LogStatus& log) {
  std::vector<std::pair<std::string, std::int64_t>> positions;
  metrics::process().followers.each([&](std::string_view name, const metrics::Gauge& next) {
    if (name != "publisher") positions.emplace_back(name, next.value());
  });
  // The publisher stores its position once a minute, so its position in memory is newer.
  positions.emplace_back("publisher", services.publisher.newest().checkpoint.size);
  positions.emplace_back("search", std::max<std::int64_t>(services.retrieval.indexer().next_seq(), 0));
  text.family("follower_next_seq", Type::gauge, "The position that a follower reads next.");
  for (const auto& [name, next] : positions) text.sample(next, metrics::label("follower", name));
  text.family("follower_lag_events", Type::gauge, "Events of the log that a follower has not read yet.");
  for (const auto& [name, next] : positions)
    text.sample(std::max<std::int64_t>(log.size - next, 0), metrics::label("follower", name));
}

void write_webhooks(Text& text, const Services& services) {
  text.family("webhook_deliveries_total", Type::counter,
              "Deliveries to webhooks by result; skipped events are not attempted again.");
  if (services.webhooks == nullptr) return;
  for (const webhook::WebhookStatus& webhook : services.webhooks->status()) {
    const std::string name = metrics::label("webhook", webhook.name) + ",";
    text.sample(webhook.delivered, name + metrics::label("result", "delivered"));
    text.sample(webhook.failed, name + metrics::label("result", "failed"));
    text.sample(webhook.skipped, name + metrics::label("result", "skipped"));
  }
}

void write_store(Text& text, Services& services, const store::LogStatus& log) {
  text.gauge("database_up", "1 when Postgres answers.", log.silent ? 0 : 1);
  text.gauge("degradations", "Sentences in the member degraded of server.status.",
             static_cast<std::int64_t>(degradations(services, log).size()));
  const store::DiskSpace disk = services.files.disk();
  text.gauge("disk_free_bytes", "Free space in the file system of the artifacts.", disk.free_bytes);
  text.gauge("disk_total_bytes", "Size of the file system of the artifacts.", disk.total_bytes);
  text.gauge("disk_reserve_bytes", "Space that must stay free.", disk.reserve_bytes);
  const metrics::Process& process = metrics::process();
  text.counter("artifact_written_bytes_total", "Bytes written to artifacts.", process.artifact_written_bytes.value());
  text.seconds("artifact_fsync_seconds", "Time of one fsync of an artifact or its folder.",
               process.artifact_fsync_seconds);
  text.seconds("snapshot_seconds", "Time to store a state before its event is appended.", process.snapshot_seconds);
  text.family("statement_seconds", Type::histogram, "Time of one Postgres statement, by its name in the code.");
  process.statements.each([&](std::string_view name, const metrics::Histogram& seconds) {
    if (seconds.seen().count > 0) text.histogram(seconds, micros_a_second, metrics::label("statement", name));
  });
}

// `muniment backup` leaves the time of the newest backup in the data folder.
void write_backup(Text& text, const Services& services) {
  constexpr std::size_t note_bytes_max = 64 * 1024;
  const auto read = read_file(services.data_dir + "/last_backup", note_bytes_max);
  const std::string note = read ? *read : "null";
  const auto document = json::parse(std::string_view(note));
  const auto made_at = document ? parse_time(document->root()["made_at"].string_or("")) : std::nullopt;
  text.gauge("last_backup_timestamp_seconds", "Time of the newest backup, in seconds since 1970; 0: none.",
             made_at ? made_at->micros / micros_a_second : 0);
}

void write_totals(Text& text, const store::Totals& totals) {
  text.family("runs", Type::gauge, "Runs of the current log by status, from the table run.");
  text.sample(totals.runs_open, metrics::label("status", "open"));
  text.sample(totals.runs_ended, metrics::label("status", "ended"));
  text.sample(totals.runs_halted, metrics::label("status", "halted"));
  text.gauge("artifacts", "Artifacts that events of the current log name.", totals.artifacts);
  text.gauge("artifact_bytes", "Bytes of these artifacts.", totals.artifact_bytes);
  text.gauge("database_bytes", "Size of the database.", totals.database_bytes);
}

void write_retrieval(Text& text, Services& services) {
  const metrics::Process& process = metrics::process();
  const auto cache = services.retrieval.retriever().cache().counts();
  text.counter("query_cache_hits_total", "Queries that the cache answered.", cache.hits);
  text.counter("query_cache_misses_total", "Queries that the cache did not have.", cache.misses);
  text.gauge("query_cache_bytes", "Memory of cached answers.", cache.bytes);
  if (const retrieval::SharedCache* shared = services.retrieval.shared_cache()) {
    const auto counts = shared->counts();
    text.counter("shared_cache_hits_total", "Answers found in the shared cache.", counts.hits);
    text.counter("shared_cache_misses_total", "Answers not found in the shared cache.", counts.misses);
    text.counter("shared_cache_refused_total", "Entries of the shared cache that were forged or no longer valid.",
                 counts.refused);
    text.counter("shared_cache_failures_total", "Requests that the shared cache did not answer.", counts.failures);
  }
  text.counter("queries_total", "Queries of evidence.retrieve.", services.counters.queries);
  text.seconds("query_seconds", "Time of one evidence.retrieve.", process.query_seconds);
  text.seconds("passage_seconds", "Time to read one passage and check its hash.", process.passage_seconds);
  text.counter("pointers_total", "Pointers validated, rendered or resolved.", services.counters.pointers);
  text.family("pointers_bad_total", Type::counter, "Unusable pointers, by reason.");
  for (std::size_t i = 0; i < evidence::reasons.size(); ++i) {
    text.sample(services.counters.pointers_bad[i], metrics::label("reason", evidence::name_of(evidence::reasons[i])));
  }
  text.counter("uses_unrecorded_total", "Answers whose event for _log was not appended.",
               process.uses_unrecorded.value());
  text.seconds("pointer_seconds", "Time to validate or resolve the pointers of one request.", process.pointer_seconds);
  text.gauge("search_next_seq", "The log position that the search indexes have reached.",
             services.retrieval.indexer().next_seq());
  text.gauge("search_waiting_chunks", "Chunks that the sentence encoder or the embedding server has not embedded.",
             process.search_waiting_chunks.value());
  text.counter("search_restarts_total", "Restarts of the search child.", services.retrieval.search().health().restarts);
}

void write_service(Text& text, Services& services) {
  const metrics::Process& process = metrics::process();
  services.requests.write(text);
  text.gauge("connections", "Open connections.", process.connections.value());
  text.gauge("connections_max", "Limit of open connections.", static_cast<std::int64_t>(services.connections_max));
  text.gauge("subscriptions", "Open subscriptions.", process.subscriptions.value());
  text.gauge("workers", "Worker threads.", process.workers.value());
  text.gauge("workers_busy", "Worker threads that serve a request.", process.workers_busy.value());
  text.gauge("workers_wanted", "Requests that wait for a worker thread.", process.workers_wanted.value());
  text.family("log_lines_total", Type::counter, "Lines of the daemon's own log, by level.");
  constexpr std::string_view levels[] = {"debug", "info", "warning", "error"};
  for (std::size_t i = 0; i < process.log_lines.size(); ++i)
    text.sample(process.log_lines[i].value(), metrics::label("level", levels[i]));
}

std::int64_t open_descriptors() {
  DIR* const folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  std::int64_t count = -3;  // excludes ".", ".." and the descriptor of the folder itself
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

// Writes the metrics that have common names across programs.
void write_process(Text& text, Services& services) {
  const Time now = services.clock.now();
  text.family("build_info", Type::gauge, "1, with the version as a label.");
  text.sample(1, metrics::label("version", MUNIMENT_VERSION));
  text.gauge("uptime_seconds", "Seconds since the daemon started.",
             (now.micros - services.started.micros) / micros_a_second);
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto micros_of = [](const timeval& time) { return std::int64_t{time.tv_sec} * micros_a_second + time.tv_usec; };
  text.family("process_cpu_seconds_total", Type::counter,
              "Processor time of the daemon, without Postgres and the search child.");
  text.sample_text(metrics::decimal_of(micros_of(used.ru_utime) + micros_of(used.ru_stime), micros_a_second));
  text.gauge("process_start_time_seconds", "Start time of the daemon, in seconds since 1970.",
             services.started.micros / micros_a_second);
  std::int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  const std::int64_t page_bytes = ::sysconf(_SC_PAGESIZE);
  text.gauge("process_virtual_memory_bytes", "Virtual memory of the daemon.", pages * page_bytes);
  text.gauge("process_resident_memory_bytes", "Its memory.", resident * page_bytes);
  text.gauge("process_open_fds", "Open file descriptors of the daemon.", open_descriptors());
  rlimit descriptors{};
  ::getrlimit(RLIMIT_NOFILE, &descriptors);
  text.gauge("process_max_fds", "Limit of open file descriptors.",
             static_cast<std::int64_t>(std::min<rlim_t>(descriptors.rlim_cur, INT64_MAX)));
}

// Returns the last sums, or new ones if enough time has passed in relation to their cost.
std::optional<store::Totals> totals_of(Services& services, store::Reader& reader) {
  StoreTotals& totals = services.totals;
  const std::unique_lock lock(totals.mutex, std::try_to_lock);
  if (!lock) return std::nullopt;  // a concurrent request is computing them
  const Monotonic now = std::chrono::steady_clock::now();
  if (!totals.known || now - totals.asked >= totals.took * totals_share) {
    auto fresh = reader.totals();
    if (!fresh) return std::nullopt;
    totals.known = *fresh;
    totals.asked = std::chrono::steady_clock::now();
    totals.took = totals.asked - now;
  }
  return totals.known;
}

}  // namespace

std::string metrics_text(Services& services, store::Reader* reader) {
  const store::LogStatus log = services.appender.status();
  Text text;
  write_process(text, services);
  write_log(text, services, log);
  write_followers(text, services, log);
  write_webhooks(text, services);
  write_store(text, services, log);
  write_backup(text, services);
  if (!log.silent && reader != nullptr) {
    if (const auto totals = totals_of(services, *reader)) write_totals(text, *totals);
  }
  write_retrieval(text, services);
  write_service(text, services);
  return std::move(text).text();
}

Result<Answer> server_metrics(Call& call) {
  // Only the sums need Postgres; all other metrics are returned without it.
  if (!call.services.appender.status().silent && !call.reader && !call.without_database) return NeedsWorker{};
  json::Writer out;
  out.begin_object()
      .member("content_type", "text/plain; version=0.0.4")
      .member("text", metrics_text(call.services, call.reader))
      .end_object();
  return Reply{std::move(out).text(), {}};
}

}  // namespace muniment::gateway::methods
