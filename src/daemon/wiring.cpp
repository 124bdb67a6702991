// Creates the parts of the daemon, serves with them, and ends them.
#include "daemon/wiring.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <string>

#include <fmt/format.h>

#include "audit/archiver.hpp"
#include "audit/closed_tree.hpp"
#include "audit/publisher.hpp"
#include "audit/recorded_tree.hpp"
#include "audit/redaction.hpp"
#include "audit/witness/submitter.hpp"
#include "base/config/prices.hpp"
#include "base/config/reporter_listen.hpp"
#include "base/crypto/dsse.hpp"
#include "base/files/file.hpp"
#include "base/json/schema.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/process/open_files.hpp"
#include "base/process/thread.hpp"
#include "bridge/cloud/cloud.hpp"
#include "daemon/daemon_parts.hpp"
#include "daemon/document_carrier.hpp"
#include "daemon/mcp/http_settings.hpp"
#include "daemon/server.hpp"
#include "daemon/start/data_folder.hpp"
#include "daemon/start/log_start.hpp"
#include "daemon/start/restored_log.hpp"
#include "evidence/halt_journal.hpp"
#include "evidence/pointer_follower.hpp"
#include "gateway/append/own_events.hpp"
#include "gateway/request/worker_pool.hpp"
#include "gateway/services.hpp"
#include "retrieval/embed/embedder.hpp"
#include "retrieval/embed/encoder/models.hpp"
#include "retrieval/service.hpp"
#include "snapshot/snapshotter.hpp"
#include "store/append/appender.hpp"
#include "store/append/written_end.hpp"
#include "store/files/artifact_files.hpp"
#include "store/logs/document_seal.hpp"
#include "store/postgres/database.hpp"
#include "store/postgres/migrations.hpp"
#include "store/postgres/partitions.hpp"
#include "store/postgres/private_postgres.hpp"
#include "store/postgres/reporter_login.hpp"
#include "store/read/connection.hpp"
#include "store/read/document_lives.hpp"
#include "store/read/reader.hpp"
#include "store/read/recorded.hpp"
#include "store/tables/prices.hpp"
#include "store/tables/report_follower.hpp"
#include "store/tables/run_follower.hpp"
#include "webhook/sender.hpp"

namespace muniment::daemon {
namespace {

constexpr std::size_t worker_tasks_max = 20'000;
constexpr std::chrono::seconds flush_at_most{10};
constexpr std::chrono::seconds partition_retry{1};

// Limits of the stop: the wait for threads that query Postgres, and the shutdown of a Postgres that does not answer. A
// stop takes less than a minute, including store::shutdown_patience, the wait for replies (daemon/server.cpp) and a
// connection attempt in progress.
constexpr std::chrono::seconds stop_patience{20}, silent_patience{3};
// Longest wait of the start for work that usually finishes shortly after.
constexpr std::chrono::milliseconds publish_at_most{300};

Result<retrieval::RemoteOptions> embedding_server(const Config& config) {
  if (config.embed_url.empty()) return retrieval::RemoteOptions{};
  retrieval::HttpEmbedderOptions options;
  options.url = config.embed_url;
  options.api = config.embed_api;
  options.model = config.embed_model;
  options.key_file = config.embed_key_file;
  options.query_prefix = config.embed_query_prefix;
  options.dimension = static_cast<std::size_t>(config.embed_dimension);
  options.timeout_ms = config.embed_timeout_ms;
  return retrieval::http_remote(options);
}

bridge::CloudSettings cloud_settings(const Config& config) {
  return {
      .url = config.cloud_url,
      .provider = config.cloud_provider,
      .model = config.cloud_model,
      .ca_file = config.cloud_ca,
      .folder = config.data,
      .below = static_cast<double>(config.cloud_below) / 100,
      .timeout_ms = config.cloud_ms,
      .private_terms = config.cloud_private == "replace" ? bridge::PrivateTerms::replace : bridge::PrivateTerms::refuse,
      .limits = {
          .calls_day = config.cloud_calls_day, .bytes_day = config.cloud_bytes_day, .calls_minute = config.cloud_rate}};
}

// Exists while the daemon ends. It releases the threads that wait for a Postgres or for standbys that do not answer: at
// once if the problem is known, otherwise when the stop has taken too long.
class Impatience {
 public:
  Impatience(store::Appender& appender, store::Connections& connections)
      : thread_(named_thread("ending", [this, &appender, &connections] {
          const auto at_latest = std::chrono::steady_clock::now() + stop_patience;
          std::unique_lock lock(mutex_);
          while (!ended_ && appender.status().away.empty() && std::chrono::steady_clock::now() < at_latest) {
            changed_.wait_for(lock, std::chrono::milliseconds(100));
          }
          if (ended_) return;
          gave_up_ = true;
          appender.close();  // requests of unknown outcome are answered as such
          connections.give_up();
        })) {}
  ~Impatience() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  bool gave_up() const { return gave_up_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::atomic<bool> gave_up_{false};
  std::thread thread_;
};

}  // namespace

Status Daemon::Parts::open_followers(const Config& config) {
  ASSIGN_OR_RETURN(const PriceList prices, read_price_list(config.price_list, config.prices));
  store::Connection writer(place.uri, store::DatabaseRole::writer);
  RETURN_IF_ERROR(store::keep_prices(writer, prices));
  audit::PublisherOptions publishing;
  publishing.data = own;
  publishing.origin = config.origin;
  publishing.place = place;
  publishing.interval = std::chrono::milliseconds(config.checkpoint_ms);
  ASSIGN_OR_RETURN(publisher, audit::Publisher::open(std::move(publishing), clock, *appender, tail));
  ASSIGN_OR_RETURN(auto keepers, audit::parse_keepers(config.witnesses));
  submitter = std::make_unique<audit::Submitter>(std::move(keepers), *publisher, clock,
                                                 [this](const Error& why) { refuse_log(why); });
  publisher->on_signed = [this](const audit::Published& published) { submitter->submit(published); };
  publisher->start();
  publisher->wait_begun(publish_at_most);
  const store::LogStatus opened = appender->status();
  const std::string key = written->key_for("documents");
  auto lives = std::make_shared<store::DocumentLives>(key);
  // A restored log accepts no appends, but can be read.
  if (restored_log) restored_tree = std::make_unique<audit::ClosedTree>(*restored_log, config.origin);
  if (!opened.refused.empty() && !restored_log) lives->refuse(Error(Errc::system_error, opened.refused));
  place.recorded->set(
      {opened.log_id, std::make_shared<audit::PublishedTree>(*publisher, *appender, tail, restored_tree.get()),
       files.get(), lives, std::make_shared<store::DocumentSeal>(own + "/keys/documents.seal", key, opened.log_id)});
  runs.trim(0, opened.size);  // the runs that the start loaded are loaded again, and held against the log
  const store::LogStatus current = appender->status();
  ASSIGN_OR_RETURN(webhooks, webhook::Sender::open(std::move(webhook_settings), place, current.log_id, current.refused,
                                                   clock, tail));
  webhooks->start();
  store::Follower::Options options;
  options.place = place;
  run_follower = std::make_unique<store::RunFollower>(options, tail);
  pointer_follower = std::make_unique<evidence::PointerFollower>(options, tail);
  report_follower = std::make_unique<store::ReportFollower>(options, tail);
  run_follower->start();
  pointer_follower->start();
  report_follower->start();
  RETURN_IF_ERROR(open_retrieval(config));  // includes the follower of documents, for which an erasure waits
  snapshot::SnapshotterOptions pace;
  pace.place = place;
  pace.events_between = config.snapshot_events;
  pace.seconds_between = config.snapshot_seconds;
  snapshots = std::make_unique<snapshot::Snapshotter>(std::move(pace), clock, *appender, runs, tail, *files);
  // An unfinished erasure is completed before a client could copy its content.
  redactor = std::make_unique<audit::Redactor>(audit::RedactionOptions{own + "/redactions", place}, clock, *appender,
                                               runs, tail, *files, *archive, *snapshots);
  archiver = std::make_unique<audit::Archiver>(place, clock, *appender, runs, tail, *publisher, *archive);
  RETURN_IF_ERROR(redactor->finish_pending());
  for (const auto& log : earlier) audit::warn_of_lost_erasures(log->folder + "/redactions", log->place.log_no);
  snapshots->start();
  // Halts that Postgres did not accept are appended before any request is served.
  ASSIGN_OR_RETURN(halts, evidence::HaltJournal::open({own + "/halts", place}, *appender, runs));
  return success();
}

// Refuses appends and reads from now on: a keeper of checkpoints has seen another log than this one.
void Daemon::Parts::refuse_log(const Error& why) {
  if (appender->status().refused.empty()) appender->refuse(why);
  const store::Recorded::Facts* const facts = place.recorded->facts();
  if (facts != nullptr) facts->lives->refuse(why);
}

Status Daemon::Parts::open_retrieval(const Config& config) {
  retrieval::ServiceOptions options;
  options.place = place;
  options.search.engine.folder = own + "/index";
  if (config.encoder != "none") {
    RETURN_IF_ERROR(retrieval::find_model(config.encoder));
    options.search.engine.models_folder = config.models.empty() ? retrieval::default_models_folder() : config.models;
  }
  options.search.search_channels = static_cast<std::size_t>(config.search_threads);
  options.search.remote = remote;
  options.retriever.cache_bytes_max = static_cast<std::size_t>(config.query_cache_bytes);
  options.retriever.hooks = {.expansion = config.expansion_hook,
                             .rerank = config.rerank_hook,
                             .hook_ms = config.hook_ms,
                             .rerank_url = config.rerank_url,
                             .rerank_key_file = config.rerank_key_file,
                             .rerank_ms = config.rerank_ms};
  options.answer_model = {.url = config.answer_url,
                          .api = config.answer_api,
                          .model = config.answer_model,
                          .key_file = config.answer_key_file,
                          .timeout_ms = config.answer_ms,
                          .drop_unsupported = config.answer_unsupported == "drop"};
  options.shared_cache = {.address = config.redis,
                          .password_file = config.redis_password_file,
                          .secret_file = own + "/keys/cache.key",
                          .seconds = config.redis_seconds,
                          .scope = fmt::format("{} {} {} {} {}", appender->status().log_id.text(), MUNIMENT_VERSION,
                                               config.embed_url, config.embed_model, config.embed_query_prefix)};
  ASSIGN_OR_RETURN(retrieval, retrieval::Service::start(std::move(options), {clock, *appender, runs, tail, *files}));
  return success();
}

void Daemon::Parts::stop_followers() {
  webhooks->stop();
  publisher->stop();
  submitter.reset();
  tail.close();
  retrieval->stop();
  run_follower->stop();
  pointer_follower->stop();
  report_follower->stop();
  snapshots->stop();
  halts.reset();
}

Status Daemon::Parts::open_socket(const Config& config, ServiceManager manager, StopSignals& signals) {
  services = std::unique_ptr<gateway::Services>(new gateway::Services{
      clock, *appender, runs, tail, *files, *snapshots, *halts, *publisher, *submitter, *redactor, *archiver,
      *retrieval, config.data, place.uri, config.socket, clock.now(), config.index_runs, connections_max});
  services->followers = {run_follower.get(), report_follower.get(), pointer_follower.get()};
  services->webhooks = webhooks.get();
  services->policies = std::move(policies);
  services->attestation_keys = std::move(attestation_keys);
  services->earlier = std::move(earlier);
  for (const auto& log : services->earlier) {
    closed_trees.push_back(std::make_unique<audit::ClosedTree>(*log, config.origin));
    services->closed_trees[log->place.log_no] = closed_trees.back().get();
  }
  carrier = std::make_unique<DocumentCarrier>(
      place, own, services->earlier, CarrierSurroundings{clock, *appender, runs, *files, retrieval->documents()});
  services->carrying = [this] { return carrier->note(); };
  if (appender->status().refused.empty()) carrier->start();
  services->cloud = cloud.get();
  services->index_waits.max = std::max<std::size_t>(1, static_cast<std::size_t>(config.workers) / 2);
  services->validator_runs.max = services->index_waits.max;
  services->tree_digests.max = services->index_waits.max;
  appender->erasure_gate().set_waiting_max(services->index_waits.max);
  workers = std::make_unique<gateway::WorkerPool>(static_cast<std::size_t>(config.workers), place, worker_tasks_max);
  ServerOptions options;
  options.socket_path = config.socket;
  for (const std::int64_t uid : config.allowed_uids) options.allowed_uids.push_back(static_cast<std::uint32_t>(uid));
  if (!config.allowed_group.empty()) {
    auto gid = group_named(config.allowed_group);
    if (!gid) return std::move(gid).error().within("allowed_group");
    options.allowed_gid = *gid;
  }
  options.mcp = {MUNIMENT_VERSION, config.mcp_toolsets, extension};
  options.mcp_files = config.mcp_files;
  options.record_mcp = config.mcp_session_runs;
  options.executor = config.executor;
  options.http = std::move(http);
  options.manager = std::move(manager);
  server = std::make_unique<Server>(std::move(options), signals, *services, *workers, *schemas);
  serving_ = server.get();
  if (lost) server->stop();
  interrupt_the_rest();
  upload_seconds_ = config.upload_seconds;
  server->on_tick = [this] {
    watch_partitions(appender->status().size);
    keep_house();
  };
  keep_house();
  return server->listen();
}

// Creates the next partition as soon as one is begun. Called after each commit and four times a minute, so a failed
// attempt is repeated long before the partition is needed.
void Daemon::Parts::watch_partitions(std::int64_t size) {
  const std::int64_t wanted = size / events_per_partition;
  if (wanted <= partition_made_ || clock.monotonic() < partition_again_.load() || partition_under_way_.exchange(true))
    return;
  const Status posted =
      workers->post(clock.monotonic() + std::chrono::minutes(1), [this, size, wanted](store::Reader& reader) {
        const auto made = store::ensure_partitions(reader.connection(), reader.log_no(), size);
        if (made) {
          partition_made_ = wanted;
        } else {
          partition_again_ = clock.monotonic() + partition_retry;
          log_error("cannot create a partition ahead; retrying", {{"error", made.error().message}});
        }
        partition_under_way_ = false;
      });
  if (!posted) partition_under_way_ = false;
}

// Bounds the directory. A run that the table does not have yet stays, because it could not be loaded again.
void Daemon::Parts::watch_runs() {
  if (runs.size() > limits::runs_in_memory_max) runs.trim(limits::runs_in_memory_max / 2, run_follower->next_seq());
}

// Runs at the start and once a minute, on a worker: limits the logs of the daemon, its children and the private server,
// and removes uploads that were abandoned.
void Daemon::Parts::keep_house() {
  if (ticks_++ % 4 != 0) return;
  workers
      ->post(
          clock.monotonic() + std::chrono::minutes(1),
          [this](store::Reader&) {
            const std::string& data = services->data_dir;
            for (const auto& [name, bytes_max] : {std::pair("/munimentd.log", limits::daemon_log_bytes_max),
                                                  std::pair("/postgres/server.log", limits::postgres_log_bytes_max)}) {
              if (const Status kept = keep_log_within(data + name, bytes_max); !kept)
                log_warning("cannot limit the size of a log file", {{"error", kept.error().message}});
            }
            if (const std::size_t expired = files->expire_uploads(upload_seconds_))
              log_info("abandoned uploads were removed", {{"uploads", expired}});
          })
      .ok();
}

Daemon::Daemon(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Daemon::~Daemon() = default;

Result<std::unique_ptr<Daemon>> Daemon::start(const Config& config, ServiceManager manager, const StartChoices& choices,
                                              StopSignals& signals) {
  ASSIGN_OR_RETURN(DataFolder folder, DataFolder::take(config.data));
  RETURN_IF_ERROR(check_restore_ended(config.data));
  auto parts = std::make_unique<Parts>(std::move(folder));
  parts->extension = choices.extension;
  RETURN_IF_ERROR(mcp::check_toolsets(config.mcp_toolsets));
  ASSIGN_OR_RETURN(parts->policies, evidence::completion::Policies::read(config.completion_policy));
  ASSIGN_OR_RETURN(parts->attestation_keys, read_trusted_keys(config.attestation_keys));
  ASSIGN_OR_RETURN(parts->webhook_settings, webhook::read_webhooks(config.webhooks));
  ASSIGN_OR_RETURN(const bridge::LocalRules local, bridge::read_local_rules(config, environ));
  ASSIGN_OR_RETURN(parts->cloud, bridge::Cloud::open(cloud_settings(config), local));
  ASSIGN_OR_RETURN(parts->http, mcp_http_options(config, choices.extension != nullptr));
  ASSIGN_OR_RETURN(SchemaSet schemas, SchemaSet::embedded());
  parts->schemas = std::make_unique<SchemaSet>(std::move(schemas));
  ASSIGN_OR_RETURN(const ConnectionsMax connections,
                   reserve_descriptors(static_cast<std::size_t>(config.workers + config.search_threads),
                                       parts->http ? parts->http->server.connections_max : 0));
  parts->connections_max = connections.socket;
  if (parts->http) parts->http->server.connections_max = connections.http;
  ASSIGN_OR_RETURN(parts->remote, embedding_server(config));
  RETURN_IF_ERROR(parts->open_files(config));
  const Status database = parts->open_database(config, choices.continue_restored, signals.fd());
  if (signals.take()) return std::unique_ptr<Daemon>();
  RETURN_IF_ERROR(database);
  const Status log = parts->open_log(config, choices.adopt_tail, signals.fd());
  if (!log)
    return signals.take() ? Result<std::unique_ptr<Daemon>>(nullptr) : Result<std::unique_ptr<Daemon>>(log.error());
  RETURN_IF_ERROR(parts->open_followers(config));
  RETURN_IF_ERROR(parts->open_socket(config, std::move(manager), signals));
  RETURN_IF_ERROR(write_file_durably(config.data + "/database.uri", parts->place.uri + "\n"));
  parts->server->ready();
  log_info("munimentd serves", {{"socket", config.socket}, {"version", MUNIMENT_VERSION}});
  return std::unique_ptr<Daemon>(new Daemon(std::move(parts)));
}

int Daemon::serve() {
  Parts& parts = *parts_;
  parts.server->run();
  log_info("munimentd stops");
  bool silent = false;
  {
    const Impatience impatience(*parts.appender, *parts.place.connections);
    parts.workers->stop();
    parts.carrier->stop();
    if (!parts.lost && parts.appender->status().away.empty()) {
      parts.snapshots->flush(flush_at_most);
      gateway::append_refusals(*parts.services, true);
      gateway::append_own(*parts.services, "log.stopped", R"({"reason":"signal"})");
    }
    parts.appender->stop();
    parts.close_log();
    parts.stop_followers();
    silent = impatience.gave_up() || parts.appender->status().silent;
  }
  if (parts.postgres) parts.postgres->stop(silent ? silent_patience : store::shutdown_patience);
  return parts.lost ? 1 : 0;
}

}  // namespace muniment::daemon
