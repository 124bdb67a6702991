// The part of a daemon's start that opens the log: its database, its files, its end, and the runs that were open.
#include "daemon/daemon_parts.hpp"

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
#include "audit/redaction.hpp"
#include "audit/witness/submitter.hpp"
#include "base/config/reporter_listen.hpp"
#include "base/config/standbys.hpp"
#include "base/files/file.hpp"
#include "base/json/schema.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/process/failpoint.hpp"
#include "base/process/open_files.hpp"
#include "base/process/thread.hpp"
#include "daemon/document_carrier.hpp"
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
#include "retrieval/service.hpp"
#include "snapshot/snapshotter.hpp"
#include "store/append/appender.hpp"
#include "store/append/written_end.hpp"
#include "store/files/artifact_files.hpp"
#include "store/logs/own_database.hpp"
#include "store/postgres/database.hpp"
#include "store/postgres/migrations.hpp"
#include "store/postgres/partitions.hpp"
#include "store/postgres/private_postgres.hpp"
#include "store/postgres/reporter_login.hpp"
#include "store/read/connection.hpp"
#include "store/read/reader.hpp"
#include "store/read/recorded.hpp"
#include "store/tables/report_follower.hpp"
#include "store/tables/run_follower.hpp"

namespace muniment::daemon {
namespace {

// Longest wait of the start for work that usually finishes shortly after.
constexpr std::chrono::milliseconds interrupt_at_most{300};

}  // namespace

Status Daemon::Parts::open_database(const Config& config, bool continue_restored, int interrupt) {
  place.uri = config.database;
  place.connections = std::make_shared<store::Connections>();
  place.recorded = std::make_shared<store::Recorded>();
  std::optional<std::string> password;
  ASSIGN_OR_RETURN(place.log_no, store::read_log_no(config.data));
  RETURN_IF_ERROR(store::check_database_choice(config.data, config.database));
  if (place.uri.empty()) {
    store::PrivatePostgresOptions options;
    options.data_dir = config.data;
    options.notice = [](const std::string& text) { log_warning(text); };
    options.interrupt = interrupt;
    ASSIGN_OR_RETURN(options.reporter, reporter_listen_of(config));
    if (options.reporter) {
      ASSIGN_OR_RETURN(password, store::read_reporter_password(config.reporter_password_file));
    }
    ASSIGN_OR_RETURN(postgres, store::PrivatePostgres::start(std::move(options)));
    place.uri = postgres->uri();
  }
  store::Connection connection(place.uri, store::DatabaseRole::login);
  RETURN_IF_ERROR(connection.ensure_open());
  ASSIGN_OR_RETURN(const Standbys standbys, standbys_of(config));
  RETURN_IF_ERROR(store::check_settings(connection, standbys));
  if (!postgres) RETURN_IF_ERROR(store::check_holds_own_log(connection, config.data, place.log_no));
  RETURN_IF_ERROR(store::migrate(connection, store::embedded_migrations()));
  RETURN_IF_ERROR(store::check_roles(connection));
  if (FAILPOINT_FAILS("start.migrated")) return Error(Errc::unavailable, "stopped after the migrations");
  if (postgres) RETURN_IF_ERROR(store::make_reporter_login(place.uri, password));
  if (continue_restored) {
    ASSIGN_OR_RETURN(place.log_no, begin_new_log(config, place.uri, place.log_no, *files, interrupt));
  }
  own = store::log_folder(config.data, place.log_no);
  if (::mkdir(own.c_str(), 0700) != 0 && errno != EEXIST) return file_error("making", own, errno);
  place.archive = own + "/archive";
  archive = std::make_unique<store::BodyArchive>(place.archive);
  store::Reader reader(place);
  ASSIGN_OR_RETURN(const std::int64_t size, reader.log_size());
  ASSIGN_OR_RETURN(events_per_partition,
                   store::ensure_partitions(reader.connection(), place.log_no, size, config.partition_bits));
  return success();
}

Status Daemon::Parts::open_files(const Config& config) {
  store::ArtifactFilesOptions options;
  options.root = config.data + "/artifacts";
  options.bytes_max = config.artifact_bytes_max;
  options.reserve_bytes = config.disk_reserve_bytes;
  options.reserve_percent = static_cast<int>(config.disk_reserve_percent);
  ASSIGN_OR_RETURN(files, store::ArtifactFiles::open(std::move(options)));
  return success();
}

Status Daemon::Parts::open_log(const Config& config, bool adopt_tail, int interrupt) {
  store::AppenderOptions options;
  options.uri = place.uri;
  options.log_no = place.log_no;
  options.folder = config.data;
  options.commit_deadline = std::chrono::milliseconds(config.commit_deadline_ms);
  ASSIGN_OR_RETURN(options.standbys, standbys_of(config));
  ASSIGN_OR_RETURN(written, store::WrittenEnd::open(own + "/keys"));
  ASSIGN_OR_RETURN(KnownEnds known, KnownEnds::read(own, config.origin, *written));
  ASSIGN_OR_RETURN(const auto keepers, audit::parse_keepers(config.witnesses));
  known.ask(keepers);
  options.roots_wanted = known.sizes();
  options.written = written.get();
  ASSIGN_OR_RETURN(appender, store::Appender::open(std::move(options), clock, tail, runs));
  hear_of_the_log();
  store::Reader reader(place);
  ASSIGN_OR_RETURN(const auto refused, reason_to_refuse(config.data, place.log_no, appender->status()));
  ASSIGN_OR_RETURN(const LogStart start, known.judge(*appender, reader, adopt_tail));
  if (refused) appender->refuse(refused->why);
  if (refused && refused->readable && !start.refused) read_as_restored();
  if (start.refused) {
    appender->refuse(*start.refused);
    tail.start_at(start.own_size);  // keeps foreign events out of tables, snapshots, indexes and tiles
  }
  if (!refused && !start.refused) RETURN_IF_ERROR(begin_log(config, start, reader));
  ASSIGN_OR_RETURN(earlier, store::read_earlier_logs(reader, config.data));
  for (const auto& log : earlier) RETURN_IF_ERROR(follow_closed_log(*log, reader, *files, interrupt));
  // This daemon is the only writer from here on, so no other daemon is between linking a file and appending its event.
  return files->sweep_staging([&](const Uuid& artifact_id) -> Result<bool> {
    ASSIGN_OR_RETURN(auto row, reader.artifact(artifact_id));
    for (std::size_t i = 0; i < earlier.size() && !row; ++i) {
      ASSIGN_OR_RETURN(row, reader.of(earlier[i]->place).artifact(artifact_id));
    }
    return row.has_value();
  });
}

// Nothing is appended to a restored log, and its tree is built from its events, which must yield the root of the start.
void Daemon::Parts::read_as_restored() {
  const store::LogStatus log = appender->status();
  restored_log = std::make_unique<store::EarlierLog>();
  restored_log->place = place;
  restored_log->place.recorded = nullptr;
  restored_log->folder = own;
  restored_log->log_id = log.log_id;
  restored_log->size = log.size;
  restored_log->root = log.root;
}

// Set before the first append, because the append thread reads them without a lock.
void Daemon::Parts::hear_of_the_log() {
  appender->on_fatal = [this](const Error&) {
    lost = true;
    if (Server* const to = serving_) to->stop();
  };
  appender->on_answered = [this] {
    if (Server* const to = serving_) to->appends_answered();
  };
  tail.on_commit = [this](std::int64_t size) {
    Server* const to = serving_;
    if (to == nullptr) return;
    to->log_grew();
    watch_partitions(size);
    watch_runs();
  };
}

// Adopted events count as written by this daemon only after an event has recorded the adoption.
Status Daemon::Parts::begin_log(const Config& config, const LogStart& start, store::Reader& reader) {
  const auto begin = [this] {
    const store::LogStatus log = appender->status();
    return written->begin(log.log_id, {log.size, log.root});
  };
  const bool adopts = start.adopted_from >= 0;
  if (!adopts) RETURN_IF_ERROR(begin());
  RETURN_IF_ERROR(announce_new_log(config.data, place.log_no, clock, *appender, runs));
  ASSIGN_OR_RETURN(start_seq_, announce_start(start, clock, *appender, runs));
  if (adopts) RETURN_IF_ERROR(begin());
  ASSIGN_OR_RETURN(interrupted_, interrupted_runs(start, start_seq_, reader));
  return interrupt_runs(interrupted_, interrupt_at_most, start_seq_, reader, clock, *appender, runs);
}

// Appends run.interrupted to the runs for which the start did not wait.
void Daemon::Parts::interrupt_the_rest() {
  if (interrupted_.run_ids.empty()) return;
  workers
      ->post(clock.monotonic() + std::chrono::hours(1),
             [this](store::Reader& reader) {
               const Status done =
                   interrupt_runs(interrupted_, std::chrono::hours(1), start_seq_, reader, clock, *appender, runs);
               if (!done)
                 log_error("run.interrupted",
                           {{"error", done.error().message}, {"runs", std::to_string(interrupted_.run_ids.size())}});
             })
      .ok();
}

// Called after the append thread has ended. If Postgres has not confirmed the last batch, the next start determines its
// outcome.
void Daemon::Parts::close_log() {
  const store::LogStatus log = appender->status();
  if (lost || !log.refused.empty() || !log.away.empty()) return;
  if (const Status kept = written->stop({log.size, log.root}); !kept)
    log_error("cannot record the last written position", {{"error", kept.error().message}});
}

}  // namespace muniment::daemon
