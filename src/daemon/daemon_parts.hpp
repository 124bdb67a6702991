// The parts of a running daemon. wiring.cpp and wiring_log.cpp create them; wiring.cpp serves with them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "audit/archiver.hpp"
#include "audit/closed_tree.hpp"
#include "audit/publisher.hpp"
#include "audit/redaction.hpp"
#include "audit/witness/submitter.hpp"
#include "base/clock.hpp"
#include "base/json/schema.hpp"
#include "bridge/cloud/cloud.hpp"
#include "daemon/document_carrier.hpp"
#include "daemon/server.hpp"
#include "daemon/start/data_folder.hpp"
#include "daemon/start/log_start.hpp"
#include "daemon/wiring.hpp"
#include "evidence/halt_journal.hpp"
#include "evidence/pointer_follower.hpp"
#include "gateway/request/worker_pool.hpp"
#include "gateway/services.hpp"
#include "retrieval/embed/embedder.hpp"
#include "retrieval/service.hpp"
#include "snapshot/snapshotter.hpp"
#include "store/append/appender.hpp"
#include "store/append/written_end.hpp"
#include "store/files/artifact_files.hpp"
#include "store/postgres/private_postgres.hpp"
#include "store/tables/report_follower.hpp"
#include "store/tables/run_follower.hpp"
#include "webhook/sender.hpp"

namespace muniment::daemon {

// Members are declared in the order of their creation and are destroyed in the reverse order.
struct Daemon::Parts {
  explicit Parts(DataFolder taken) : folder(std::move(taken)) {}
  // Also cleans up after a failed start: no append calls a server that no longer exists, and no follower waits for the
  // log.
  ~Parts() {
    if (appender) appender->stop();
    tail.close();
  }

  DataFolder folder;
  Clock clock;
  std::size_t connections_max = 0;
  const mcp::Extension* extension = nullptr;
  evidence::completion::Policies policies;  // until they move to the services
  std::vector<VerifierKey> attestation_keys;
  std::vector<webhook::Webhook> webhook_settings;  // until they move to the sender
  std::optional<McpHttpOptions> http;              // until it moves to the server
  std::unique_ptr<bridge::Cloud> cloud;
  retrieval::RemoteOptions remote;
  std::unique_ptr<store::PrivatePostgres> postgres;
  store::LogPlace place;
  std::string own;  // folder of this log's own files
  std::int64_t events_per_partition = 0;
  std::unique_ptr<SchemaSet> schemas;
  store::Tail tail;
  store::RunDirectory runs;
  store::EarlierLogs earlier;  // until they move to the services
  std::unique_ptr<store::ArtifactFiles> files;
  std::unique_ptr<store::BodyArchive> archive;
  std::unique_ptr<store::WrittenEnd> written;
  std::unique_ptr<store::Appender> appender;
  // The log and its tree if it was restored and can be read; otherwise nullptr.
  std::unique_ptr<store::EarlierLog> restored_log;
  std::unique_ptr<audit::Publisher> publisher;
  std::unique_ptr<audit::ClosedTree> restored_tree;
  std::unique_ptr<audit::Submitter> submitter;
  std::unique_ptr<webhook::Sender> webhooks;
  std::unique_ptr<store::RunFollower> run_follower;
  std::unique_ptr<evidence::PointerFollower> pointer_follower;
  std::unique_ptr<store::ReportFollower> report_follower;
  std::unique_ptr<evidence::HaltJournal> halts;
  std::unique_ptr<snapshot::Snapshotter> snapshots;
  std::unique_ptr<audit::Redactor> redactor;
  std::unique_ptr<audit::Archiver> archiver;
  std::unique_ptr<retrieval::Service> retrieval;
  std::unique_ptr<gateway::Services> services;
  // Trees of the earlier logs; the services refer to them.
  std::vector<std::unique_ptr<audit::ClosedTree>> closed_trees;
  std::unique_ptr<DocumentCarrier> carrier;
  std::unique_ptr<gateway::WorkerPool> workers;
  std::unique_ptr<Server> server;
  std::atomic<bool> lost{false};  // another daemon took the log over, or the log differs from the recorded one

  Status open_database(const Config& config, bool continue_restored, int interrupt);
  Status open_files(const Config& config);
  Status open_log(const Config& config, bool adopt_tail, int interrupt);
  Status begin_log(const Config& config, const LogStart& start, store::Reader& reader);
  Status open_followers(const Config& config);
  Status open_retrieval(const Config& config);
  Status open_socket(const Config& config, ServiceManager manager, StopSignals& signals);
  void stop_followers();
  void watch_partitions(std::int64_t size);
  void watch_runs();
  void keep_house();
  void interrupt_the_rest();
  void close_log();

 private:
  void hear_of_the_log();
  void read_as_restored();
  void refuse_log(const Error& why);

  std::atomic<Server*> serving_{nullptr};  // null until the server exists
  std::int64_t start_seq_ = -1;            // seq of log.started
  OpenRuns interrupted_;                   // runs whose run.interrupted is not appended yet
  int ticks_ = 0;                          // loop thread only; four ticks a minute
  std::int64_t upload_seconds_ = 0;
  std::atomic<std::int64_t> partition_made_{0};  // highest partition that was created ahead
  std::atomic<bool> partition_under_way_{false};
  std::atomic<Monotonic> partition_again_{Monotonic()};  // earliest time of the next attempt after a failure
};

}  // namespace muniment::daemon
