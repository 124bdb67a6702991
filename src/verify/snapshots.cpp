#include "verify/snapshots.hpp"

#include <fmt/format.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <vector>

#include "verify/fold.hpp"
#include "verify/parallel.hpp"

namespace muniment::verify {
namespace {

constexpr std::int64_t events_a_stretch = 50'000;
constexpr std::int64_t spilled_patch_bytes_max = 4'194'304;

// Runs with neighbouring numbers, read with one query.
struct Stretch {
  std::int64_t first_run = 0;
  std::int64_t last_run = 0;
  std::int64_t upto = 0;  // the last seq that a snapshot of theirs includes
  std::int64_t events = 0;
};

Result<std::vector<Stretch>> plan(Connection& connection, const Log& log) {
  RETURN_IF_ERROR(connection.start_copy(fmt::format(
      "SELECT run_no, max(seq), max(run_seq) FROM snapshot WHERE log_no = {} GROUP BY run_no ORDER BY run_no", log.log_no)));
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

struct TakenSnapshot {
  std::int64_t run_no = 0, seq = 0, run_seq = 0, event_seq = 0, size_bytes = 0;
  std::optional<std::string> salt, state;
  std::string hash, state_hash;
  std::optional<std::string> artifact_hash;  // hexadecimal; of the artifact that holds the state
};

// Folds the runs of one stretch. `events` streams them; `rows` reads the snapshots beside them.
class Folder {
 public:
  Folder(const SnapshotWork& work, Connection& events, Connection& rows, SnapshotCounts& counts)
      : work_(work), events_(events), rows_(rows), counts_(counts) {}

  Status fold(const Stretch& stretch, std::size_t number) {
    const std::string where = fmt::format("log_no = {} AND run_no BETWEEN {} AND {} AND seq <= {}", work_.log.log_no,
                                          stretch.first_run, stretch.last_run, stretch.upto);
    ASSIGN_OR_RETURN(Cursor snapshots, Cursor::open(rows_, fmt::format("snapshots_{}", number), fmt::format(
        "SELECT s.run_no, s.seq, s.run_seq, s.event_seq, s.size_bytes, s.salt, s.state, s.hash, s.state_hash, a.hash "
        "FROM (SELECT * FROM snapshot WHERE {}) s LEFT JOIN artifact a ON a.artifact_id = s.artifact_id "
        "ORDER BY s.run_no, s.seq", where)));
    RETURN_IF_ERROR(advance(snapshots));
    RETURN_IF_ERROR(events_.start_copy(fmt::format(
        "SELECT run_no, run_seq, seq, recorded_at, type, origin, step_id, run_hash, "
        "CASE WHEN type IN ('{}') THEN body END FROM event WHERE {} ORDER BY run_no, run_seq",
        fmt::join(Fold::types_with_bodies(), "','"), where)));
    Row row;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, events_.next(row));
      if (!more) break;
      RETURN_IF_ERROR(take(row, snapshots));
    }
    while (next_) RETURN_IF_ERROR(pass_over(snapshots));
    return success();
  }

 private:
  Status advance(Cursor& snapshots) {
    Row row;
    ASSIGN_OR_RETURN(const bool more, snapshots.next(row));
    next_.reset();
    if (!more) return success();
    next_ = TakenSnapshot{row.integer(0), row.integer(1), row.integer(2), row.integer(3), row.integer(4),
                          row.optional_text(5), row.optional_text(6), row.text(7), row.text(8), row.optional_text(9)};
    return success();
  }

  // No event of that run has the snapshot's seq.
  Status pass_over(Cursor& snapshots) {
    found(Check::snapshot, fmt::format("an event of this run with seq {}", next_->seq), "none");
    return advance(snapshots);
  }

  Status take(const Row& row, Cursor& snapshots) {
    const std::int64_t run_no = row.integer(0);
    if (run_no != run_no_ || !fold_) {
      run_no_ = run_no;
      fold_.emplace(work_.log.run_id(run_no));
      foldable_ = true;
    }
    FoldEvent event;
    event.run_seq = row.integer(1);
    event.seq = row.integer(2);
    event.recorded_at = row.time(3);
    event.type = row.bytes(4);
    event.origin = row.integer(5);
    event.step_id = row.optional_text(6);
    event.run_hash = row.hex(7);
    event.body = row.optional_text(8);
    while (next_ && (next_->run_no < run_no || (next_->run_no == run_no && next_->seq < event.seq))) {
      RETURN_IF_ERROR(pass_over(snapshots));
    }
    if (foldable_) RETURN_IF_ERROR(apply(event));
    if (!next_ || next_->run_no != run_no || next_->seq != event.seq) return success();
    if (next_->run_seq != event.run_seq) {
      found(Check::snapshot, fmt::format("run_seq = {}", event.run_seq), fmt::format("run_seq = {}", next_->run_seq));
    }
    compare();
    return advance(snapshots);
  }

  Status apply(const FoldEvent& event) {
    const std::string artifact_id = spilled_patch_of(event);
    std::optional<std::string> spilled;
    if (!artifact_id.empty() && !work_.redacted.contains(artifact_id)) {
      ASSIGN_OR_RETURN(spilled, patch_bytes(artifact_id));
      foldable_ = spilled.has_value();
    }
    if (foldable_) fold_->apply(event, spilled);
    return success();
  }

  // nullopt: the artifact is missing or damaged, which the check of the files has reported.
  Result<std::optional<std::string>> patch_bytes(const std::string& artifact_id) {
    std::optional<std::string> bytes;
    if (!parse_uuid(artifact_id)) return bytes;
    RETURN_IF_ERROR(rows_.start_copy(fmt::format("SELECT path, hash, size_bytes FROM artifact WHERE artifact_id = '{}'", artifact_id)));
    Row row;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, rows_.next(row));
      if (!more) return bytes;
      if (row.integer(2) > spilled_patch_bytes_max) {
        bytes = std::string(static_cast<std::size_t>(spilled_patch_bytes_max) + 1, ' ');  // refused for its size alone
        continue;
      }
      auto read = work_.root.read(row.text(0), spilled_patch_bytes_max);
      if (read && to_hex(sha256(*read)) == row.bytes(1)) bytes = *std::move(read);
    }
  }

  void compare() {
    if (next_->state) {
      check_inline_hashes();
    } else if (!next_->artifact_hash) {
      ++counts_.erased;
      return;
    } else if (*next_->artifact_hash != to_hex(next_->state_hash)) {
      found(Check::snapshot_hash, "state_hash = " + *next_->artifact_hash, "state_hash = " + to_hex(next_->state_hash));
    }
    if (!foldable_) {
      ++counts_.not_folded;
      return;
    }
    ++counts_.folded;
    const std::string document = fold_->document();
    const std::string folded = to_hex(sha256(document));
    // The file behind artifact_hash is checked with all artifacts: equal hashes are equal states.
    const std::string held = next_->state ? to_hex(sha256(*next_->state)) : *next_->artifact_hash;
    if (folded != held) {
      found(Check::snapshot_fold, "state_hash = " + folded, "state_hash = " + held);
    } else if (!next_->state && next_->salt && view(sha256({*next_->salt, document})) != next_->hash) {
      found(Check::snapshot_hash, "hash = " + to_hex(sha256({*next_->salt, document})), "hash = " + to_hex(next_->hash));
    }
  }

  void check_inline_hashes() {
    const std::string hash = to_hex(sha256({next_->salt.value_or(""), *next_->state}));
    const std::string state_hash = to_hex(sha256(*next_->state));
    if (hash != to_hex(next_->hash)) found(Check::snapshot_hash, "hash = " + to_hex(next_->hash), "sha256(salt, state) = " + hash);
    if (state_hash != to_hex(next_->state_hash)) {
      found(Check::snapshot_hash, "state_hash = " + to_hex(next_->state_hash), "sha256(state) = " + state_hash);
    }
    if (next_->size_bytes != static_cast<std::int64_t>(next_->state->size())) {
      found(Check::snapshot_hash, fmt::format("size_bytes = {}", next_->size_bytes), fmt::format("{} bytes", next_->state->size()));
    }
  }

  void found(Check check, std::string expected, std::string actual) {
    work_.findings.add({check, next_->event_seq, work_.log.run_id(next_->run_no), std::move(expected), std::move(actual)});
  }

  const SnapshotWork& work_;
  Connection& events_;
  Connection& rows_;
  SnapshotCounts& counts_;
  std::optional<TakenSnapshot> next_;
  std::optional<Fold> fold_;
  std::int64_t run_no_ = -1;
  bool foldable_ = true;
};

}  // namespace

Status check_snapshots(const SnapshotWork& work, unsigned jobs, SnapshotCounts& counts) {
  ASSIGN_OR_RETURN(const std::vector<Stretch> stretches, plan(work.snapshot.holder(), work.log));
  if (stretches.empty()) return success();
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  return in_parallel(jobs, [&](unsigned) -> Status {
    ASSIGN_OR_RETURN(Connection events, work.snapshot.join());
    ASSIGN_OR_RETURN(Connection rows, work.snapshot.join());
    SnapshotCounts mine;
    for (std::size_t i = next++; i < stretches.size(); i = next++) {
      RETURN_IF_ERROR(Folder(work, events, rows, mine).fold(stretches[i], i));
    }
    const std::lock_guard lock(mutex);
    counts.folded += mine.folded;
    counts.erased += mine.erased;
    counts.not_folded += mine.not_folded;
    return success();
  });
}

}  // namespace muniment::verify
