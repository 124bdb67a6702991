#include "verify/state/snapshots.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "verify/log/parallel.hpp"

namespace muniment::verify {
namespace {

constexpr std::int64_t events_a_stretch = 50'000;

// Runs with adjacent numbers that one query reads.
struct Stretch {
  std::int64_t first_run = 0;
  std::int64_t last_run = 0;
  std::int64_t upto = 0;  // the last seq that one of their snapshots includes
  std::int64_t events = 0;
};

Result<std::vector<Stretch>> plan(Connection& connection, const Log& log) {
  RETURN_IF_ERROR(connection.start_copy(fmt::format(
      "SELECT run_no, max(seq), max(run_seq) FROM snapshot WHERE log_no = {} AND run_no > {} GROUP BY run_no ORDER BY run_no",
      log.log_no, log.run_no_known)));
  std::vector<Stretch> stretches;
  Row row;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, connection.next(row));
    if (!more) return stretches;
    const std::int64_t run_no = row.integer(0);
    if (stretches.empty() || stretches.back().last_run + 1 != run_no || stretches.back().events > events_a_stretch) {
      stretches.push_back({run_no, run_no, 0, 0});
    }
    Stretch& stretch = stretches.back();
    stretch.last_run = run_no;
    stretch.upto = std::max(stretch.upto, row.integer(1));
    stretch.events += row.integer(2) + 1;
  }
}

class DatabaseSnapshots : public SnapshotSource {
 public:
  explicit DatabaseSnapshots(Cursor rows) : rows_(std::move(rows)) {}

  Result<std::optional<TakenSnapshot>> next() override {
    Row row;
    ASSIGN_OR_RETURN(const bool more, rows_.next(row));
    if (!more) return std::optional<TakenSnapshot>();
    return std::optional(TakenSnapshot{row.integer(0), row.integer(1), row.integer(2), row.integer(3), row.integer(4),
                                       row.optional_text(5), row.optional_text(6), row.text(7), row.text(8),
                                       row.optional_text(9), row.uuid_text(10)});
  }

 private:
  Cursor rows_;
};

class DatabasePatches : public PatchSource {
 public:
  DatabasePatches(Connection& rows, const ArtifactRoot& root) : rows_(rows), root_(root) {}

  Result<std::optional<std::string>> bytes(const std::string& artifact_id) override {
    std::optional<std::string> bytes;
    if (!parse_uuid(artifact_id)) return bytes;
    RETURN_IF_ERROR(rows_.start_copy(
        fmt::format("SELECT path, hash, size_bytes FROM artifact WHERE artifact_id = '{}'", artifact_id)));
    Row row;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, rows_.next(row));
      if (!more) return bytes;
      if (row.integer(2) > spilled_patch_bytes_max) {
        bytes = std::string(static_cast<std::size_t>(spilled_patch_bytes_max) + 1, ' ');
        continue;
      }
      auto read = root_.read(row.text(0), spilled_patch_bytes_max);
      if (read && to_hex(sha256(*read)) == row.bytes(1)) bytes = *std::move(read);
    }
  }

 private:
  Connection& rows_;
  const ArtifactRoot& root_;
};

FoldEvent fold_event_of(const Row& row) {
  FoldEvent event;
  event.run_seq = row.integer(1);
  event.seq = row.integer(2);
  event.recorded_at = row.time(3);
  event.type = row.bytes(4);
  event.origin = row.integer(5);
  event.step_id = row.optional_text(6);
  event.run_hash = row.hex(7);
  event.body = row.optional_text(8);
  event.erased = row.integer(9) == 1;
  return event;
}

// Folds the runs of one stretch. `events` streams their events; `rows` reads their snapshots.
Status fold(const SnapshotWork& work, const Stretch& stretch, std::size_t number, Connection& events, Connection& rows,
            SnapshotCounts& counts) {
  const std::string where = fmt::format("log_no = {} AND run_no BETWEEN {} AND {} AND seq <= {}", work.log.log_no,
                                        stretch.first_run, stretch.last_run, stretch.upto);
  ASSIGN_OR_RETURN(
      Cursor cursor,
      Cursor::open(
          rows, fmt::format("snapshots_{}", number),
          fmt::format(
              "SELECT s.run_no, s.seq, s.run_seq, s.event_seq, s.size_bytes, s.salt, s.state, s.hash, s.state_hash, a.hash, s.artifact_id "
              "FROM (SELECT * FROM snapshot WHERE {}) s LEFT JOIN artifact a ON a.artifact_id = s.artifact_id "
              "ORDER BY s.run_no, s.seq",
              where)));
  DatabaseSnapshots snapshots(std::move(cursor));
  DatabasePatches patches(rows, work.root);
  RunFolder folder(work.log, work.redacted, snapshots, patches, work.findings, counts);
  RETURN_IF_ERROR(folder.start());
  RETURN_IF_ERROR(events.start_copy(fmt::format(
      "SELECT run_no, run_seq, seq, recorded_at, type, origin, step_id, run_hash, "
      "CASE WHEN type IN ('{0}') THEN body END, (salt IS NULL)::int, (type IN ('{0}') AND salt IS NOT NULL AND body IS NULL)::int "
      "FROM event WHERE {1} ORDER BY run_no, run_seq",
      fmt::join(Fold::types_with_bodies(), "','"), where)));
  ArchivedBodies archive(work.archive, work.snapshot, work.log.log_no);
  Row row;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, events.next(row));
    if (!more) return folder.finish();
    FoldEvent event = fold_event_of(row);
    if (row.integer(10) == 1) {
      const auto body = archive.body(event.seq);
      if (body) event.body = *body;
      event.unread = !body.ok();
    }
    RETURN_IF_ERROR(folder.take(row.integer(0), event));
  }
}

}  // namespace

Status check_snapshots(const SnapshotWork& work, unsigned jobs, SnapshotCounts& counts) {
  ASSIGN_OR_RETURN(const std::vector<Stretch> stretches, plan(work.snapshot.holder(), work.log));
  if (stretches.empty()) return success();
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  // Each worker uses two connections, and the server has other clients.
  return in_parallel(std::max(1U, jobs / 2), [&](unsigned) -> Status {
    ASSIGN_OR_RETURN(Connection events, work.snapshot.join());
    ASSIGN_OR_RETURN(Connection rows, work.snapshot.join());
    SnapshotCounts mine;
    for (std::size_t i = next++; i < stretches.size(); i = next++) {
      RETURN_IF_ERROR(fold(work, stretches[i], i, events, rows, mine));
    }
    const std::lock_guard lock(mutex);
    counts.folded += mine.folded;
    counts.erased += mine.erased;
    counts.not_folded += mine.not_folded;
    return success();
  });
}

}  // namespace muniment::verify
