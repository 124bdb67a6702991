#include "verify/verify.hpp"

#include <fmt/format.h>

#include <thread>

#include "base/files/file.hpp"
#include "base/limits.hpp"
#include "verify/log/fixed_end.hpp"
#include "verify/log/log.hpp"
#include "verify/log/parallel.hpp"
#include "verify/log/saved_state.hpp"
#include "verify/log/span_queue.hpp"
#include "verify/postgres/database.hpp"
#include "verify/postgres/definitions.hpp"
#include "verify/postgres/shadows.hpp"
#include "verify/postgres/shared_snapshot.hpp"
#include "verify/signed/published_checkpoint.hpp"
#include "verify/tables/erased_rows.hpp"
#include "verify/tables/erased_states.hpp"
#include "verify/tables/passages.hpp"

namespace muniment::verify {
namespace {

class Verification {
 public:
  Verification(const Options& options, const FixedEnd& end, KeptFiles kept, SharedSnapshot snapshot, Report& report)
      : options_(options), end_(end), kept_(std::move(kept)), snapshot_(std::move(snapshot)), report_(report) {}

  // Findings count even if this function returns an error.
  Status run(const ArtifactRoot& root) {
    std::vector<std::int64_t> others;
    ASSIGN_OR_RETURN(log_, find_log(snapshot_.holder(), options_.log_no, others));
    for (const std::int64_t other : others)
      report_.not_checked.push_back(fmt::format("log {} of this database (--log {})", other, other));
    RETURN_IF_ERROR(read_resumed());
    report_.log_id = log_.log_id.text();
    report_.upto = log_.upto;
    if (log_.archived && options_.archive.empty()) {
      return Error(Errc::unavailable,
                   "partitions of this log are archived. Name the folder of their bodies with --archive FOLDER");
    }
    RETURN_IF_ERROR(check_partitions(snapshot_.holder(), log_, findings_));
    RETURN_IF_ERROR(read_run_ids(snapshot_.holder(), log_));
    SignedLog signatures(log_.log_id, std::move(kept_), report_.started, findings_);
    if (resumed_) signatures.resume(*resumed_);
    RETURN_IF_ERROR(signatures.open_stored(snapshot_.holder(), log_.log_no, log_.from));
    ASSIGN_OR_RETURN(std::optional<TileFiles> tiles, open_tiles(signatures.published()));
    ASSIGN_OR_RETURN(History history,
                     History::open(snapshot_.holder(), log_, root, signatures, tiles ? &*tiles : nullptr,
                                   resumed_ ? &*resumed_ : nullptr, findings_));
    save_at_ = size_to_save(signatures);
    const Status read = read_events(history);
    report_.history = history.counts();
    report_.signatures = signatures.outcome();
    report_.warnings.insert(report_.warnings.end(), signatures.warnings().begin(), signatures.warnings().end());
    if (tiles) report_.tiles = tiles->counts();
    RETURN_IF_ERROR(read);
    RETURN_IF_ERROR(look_behind_signature());
    RETURN_IF_ERROR(check_published(snapshot_.holder(), log_, signatures, {options_.notes.tiles, end_.live}, findings_,
                                    report_.warnings));
    if (saved_) saved_->keys = signatures.trusted();
    return check_beside(history, root);
  }

  // Returns the size at which the state is saved: the newest signed size, else the published size (where the tiles
  // end), else the size of the log.
  std::int64_t size_to_save(const SignedLog& signatures) const {
    for (const std::int64_t size : {signatures.newest_size_within(log_.upto + 1), signatures.published()}) {
      if (size > 0 && size >= log_.from && size <= log_.upto + 1) return size;
    }
    return log_.upto + 1;
  }

  // Saves the state for a later verification. Call only if there are no findings.
  Status save() {
    if (options_.save.empty() || !saved_) return success();
    saved_->saved_at = report_.started;
    if (report_.signatures.upto == saved_->size - 1) saved_->note = report_.signatures.newest;
    return write_file_durably(options_.save, json_of(*saved_));
  }

  const Findings& findings() const { return findings_; }

 private:
  Result<std::optional<TileFiles>> open_tiles(std::int64_t published) {
    auto tiles = TileFiles::open(options_.notes.tiles, published, report_.started, options_.jobs, findings_);
    if (tiles && resumed_) {
      if (const Status there = tiles->resume(resumed_->size, resumed_->edge); !there) {
        if (there.error().code == Errc::unavailable) return there.error();
        if (there.error().code == Errc::not_found && published < resumed_->size) {
          report_.not_checked.push_back(
              fmt::format("tiles (none holds the first {} events yet, where the saved verify ended)", resumed_->size));
          return std::optional<TileFiles>();
        }
        findings_.add({Check::tile, -1, "",
                       fmt::format("{}: the tiles of the saved size {}", options_.notes.tiles, resumed_->size),
                       there.error().message});
        return std::optional<TileFiles>();
      }
    }
    if (tiles) {
      if (published == 0) report_.not_checked.push_back("missing tiles (none were published with a checkpoint)");
      return std::optional(*std::move(tiles));
    }
    if (tiles.error().code != Errc::not_found && !options_.notes.tiles.empty()) return std::move(tiles).error();
    report_.not_checked.push_back(options_.notes.tiles.empty() ? "tiles"
                                                               : "tiles (there is no " + options_.notes.tiles + ")");
    return std::optional<TileFiles>();
  }

  // Events below the saved size, and the rows and files beside them, are not read again.
  Status read_resumed() {
    if (options_.resume.empty()) return success();
    ASSIGN_OR_RETURN(const std::string text, read_named(options_.resume, limits::saved_state_bytes_max));
    auto state = parse_saved_state(text);
    if (!state) return std::move(state).error().within(options_.resume);
    if (state->log_id != log_.log_id)
      return Error(Errc::conflict, fmt::format("{}: belongs to log {}. Give the saved state of this log",
                                               options_.resume, state->log_id.text()));
    resumed_ = *std::move(state);
    log_.from = report_.resumed_from = resumed_->size;
    log_.run_no_known = resumed_->run_no_max;
    log_.run_ids = resumed_->run_ids;
    report_.not_checked.push_back(fmt::format(
        "events below {}, their rows, files, snapshots and tiles, and checkpoints of smaller sizes (verified {})",
        resumed_->size, format_time(resumed_->saved_at)));
    report_.not_checked.insert(report_.not_checked.end(), {"the fold of snapshots of runs that began before",
                                                           "the run table", "corpora", "unknown files"});
    if (log_.upto + 1 < resumed_->size) {
      findings_.add({Check::log_rolled_back, log_.upto + 1, "",
                     fmt::format("a log of at least {} events", resumed_->size),
                     fmt::format("a log of {} events", log_.upto + 1)});
    }
    return success();
  }

  Status check_database(const History& history) {
    RETURN_IF_ERROR(check_shadows(snapshot_.holder(), findings_));
    RETURN_IF_ERROR(check_foreign_rows(snapshot_.holder(), findings_));
    RETURN_IF_ERROR(check_rows_before(snapshot_.holder(), log_, findings_));
    RETURN_IF_ERROR(check_closed_end(snapshot_.holder(), log_, findings_));
    RETURN_IF_ERROR(
        check_followers(snapshot_.holder(), log_, {end_.live, report_.started}, findings_, report_.not_checked));
    if (!resumed_) RETURN_IF_ERROR(check_archived_partitions(snapshot_.holder(), log_, history.archived(), findings_));
    ASSIGN_OR_RETURN(report_.unknown_schema,
                     check_definitions(snapshot_.holder(), findings_, report_.warnings, report_.not_checked));
    return success();
  }

  // Signatures must cover the fixed end; later events may still wait for their checkpoint.
  Status look_behind_signature() {
    const std::int64_t upto = report_.signatures.upto;
    if (upto < 0) return success();
    if (upto >= end_.upto) {
      report_.newer = std::max<std::int64_t>(0, log_.upto - upto);
      report_.upto = upto;
      return success();
    }
    UnsignedTail tail{upto + 1, log_.upto - upto, {}, {}, end_.live};
    RETURN_IF_ERROR(snapshot_.holder().start_copy(
        fmt::format("SELECT recorded_at FROM event WHERE log_no = {} AND seq IN ({}, {}) ORDER BY seq", log_.log_no,
                    tail.from, log_.upto)));
    Row row;
    for (bool first = true;; first = false) {
      ASSIGN_OR_RETURN(const bool more, snapshot_.holder().next(row));
      if (!more) break;
      if (first) tail.since = row.time(0);
      tail.until = row.time(0);
    }
    report_.tail = tail;
    return success();
  }

  Status check_beside(History& history, const ArtifactRoot& root) {
    progress("the database", 0, 0);
    RETURN_IF_ERROR(check_database(history));
    std::set<std::string> erasing;
    Findings outside;  // findings on data read outside the snapshot
    // An error of this check is returned after the other checks, so that their findings are reported.
    const Status rows = check_erased_rows(snapshot_, log_, history.counts().redacted, history.announced(),
                                          options_.notes.data, findings_, erasing);
    const Status looked = look_outside(history, root, outside);
    const Status taken = take_over(outside, erasing);
    return !rows ? rows : !looked ? looked : taken;
  }

  Status look_outside(History& history, const ArtifactRoot& root, Findings& outside) {
    std::vector<LeftFile> left;
    const FileWork files{snapshot_, log_, root, history.redacted_artifacts(), outside, left};
    progress("files", 0, report_.history.tables.artifacts);
    RETURN_IF_ERROR(check_files(files, options_.jobs, report_.files));
    if (report_.files.looked_at != report_.history.tables.artifacts) {
      return Error(Errc::unavailable, fmt::format("Postgres returned {} artifacts to one query and {} to another",
                                                  report_.files.looked_at, report_.history.tables.artifacts));
    }
    if (!resumed_) {
      progress("unknown files", 0, 0);
      RETURN_IF_ERROR(check_unknown_files(files, report_.files));
    }
    if (!resumed_) {
      progress("passages", 0, report_.history.corpora.passages);
      RETURN_IF_ERROR(check_passages(files, options_.jobs));
    }
    progress("snapshots", 0, report_.history.tables.snapshots);
    RETURN_IF_ERROR(check_snapshots({snapshot_, log_, root, options_.archive, history.redacted_artifacts(), outside},
                                    options_.jobs, report_.snapshots));
    RETURN_IF_ERROR(check_erased_states(snapshot_.holder(), log_, history.redacted_artifacts(), findings_));
    return check_left_files(files, options_.notes.data);
  }

  // An erasure during the verification is not damage, so findings on the erased runs are reported as unconfirmed.
  // `erasing` holds the runs whose erasure was in progress when the snapshot was taken.
  Status take_over(const Findings& outside, std::set<std::string> erasing) {
    if (outside.count() == 0) return success();
    auto now = snapshot_.outside();
    Status asked =
        now ? now->start_copy(fmt::format(
                  "SELECT DISTINCT run_no FROM event WHERE log_no = {} AND seq > {} AND type IN ('event.redacted', 'artifact.redacted')",
                  log_.log_no, log_.upto))
            : Status(now.error());
    Row row;
    for (bool more = asked.ok(); more;) {
      const Result<bool> next = now->next(row);
      if (!next) asked = next.error();
      more = next && *next;
      if (more) erasing.insert(log_.run_id(row.integer(0)));
    }
    if (!asked) {
      return Error(
          Errc::unavailable,
          fmt::format(
              "{} findings on files and states may concern content that was erased during this verify, which could not be checked: {}",
              outside.count(), asked.error().message));
    }
    const std::size_t open = findings_.add_others_than_of(erasing, outside);
    if (open == 0) return success();
    return Error(
        Errc::unavailable,
        fmt::format(
            "content was erased during this verify, and {} findings on files and states of the same runs may result from that. "
            "Verify again",
            open));
  }

  Status read_events(History& history) {
    SpanQueue queue(span_ranges(log_.from, save_at_, log_.upto + 1), options_.jobs);
    if (history.size() == save_at_) saved_ = history.state();
    Status scanned = success();
    std::jthread scanners([&] { scanned = in_parallel(options_.jobs, [&](unsigned) { return scan_spans(queue); }); });
    Status joined = success();
    while (auto span = queue.take()) {
      if (joined = history.add(*std::move(span)); !joined) queue.stop();
      if (history.size() == save_at_) saved_ = history.state();
      progress("events", history.counts().events, log_.upto + 1);
    }
    scanners.join();
    RETURN_IF_ERROR(scanned);
    RETURN_IF_ERROR(joined);
    return history.finish();
  }

  Status scan_spans(SpanQueue& queue) {
    const auto work = [&]() -> Status {
      ASSIGN_OR_RETURN(Connection connection, snapshot_.join());
      ArchivedBodies archive(options_.archive, snapshot_, log_.log_no);
      while (const auto number = queue.claim()) {
        const SpanRange range = queue.range(*number);
        ASSIGN_OR_RETURN(Span span, scan(connection, archive, log_, range.begin, range.end, findings_));
        queue.put(*number, std::move(span));
      }
      return success();
    };
    Status outcome = work();
    if (!outcome) queue.stop();
    return outcome;
  }

  void progress(const char* doing, std::int64_t done, std::int64_t of) const {
    if (options_.progress) options_.progress(doing, done, of);
  }

  const Options& options_;
  const FixedEnd end_;
  KeptFiles kept_;
  SharedSnapshot snapshot_;
  Report& report_;
  Log log_;
  Findings findings_;
  std::optional<SavedState> resumed_, saved_;
  std::int64_t save_at_ = 0;
};

void judge(Report& report, const Findings& findings, const Status& outcome) {
  report.findings = findings.first();
  report.findings_count = findings.count();
  if (!outcome) report.problem = outcome.error().message;
  if (outcome.ok() && !report.files.unread.empty()) {
    report.problem =
        fmt::format("{} files could not be read, first {}", report.files.unread.size(), report.files.unread.front());
  }
  if (report.findings_count > 0) {
    report.verdict = Verdict::tampered;
  } else if (!report.problem.empty()) {
    report.verdict = Verdict::incomplete;
  } else if (!report.signatures.wrong_key.empty()) {
    report.verdict = Verdict::wrong_key;
  } else if (!report.unknown_schema.empty()) {
    report.problem = report.unknown_schema;
    report.verdict = Verdict::unknown_schema;
  } else {
    report.verdict = report.signatures.upto < 0 ? Verdict::is_unsigned
                     : report.tail              ? Verdict::unsigned_tail
                                                : Verdict::verified;
  }
}

void say_what_is_missing(Report& report) {
  if (report.signatures.without_key) {
    report.not_checked.insert(report.not_checked.begin(), "signatures (no key was given: --key FILE)");
  } else if (report.signatures.checkpoints == 0) {
    report.not_checked.insert(report.not_checked.begin(), "signatures (the log has no signed checkpoints)");
  }
  if (report.snapshots.not_folded > 0) {
    report.not_checked.push_back(fmt::format(
        "the fold of {} snapshots: an artifact that it needs is missing or damaged", report.snapshots.not_folded));
  }
  report.not_checked.insert(
      report.not_checked.end(),
      {"search indexes", "pointer catalogue", "report tables", "language and chunker of the text of runs",
       "log_head.epoch and writer, positions of the publisher and of snapshots, and when rows were written",
       "roles and rights", "whether indexes have all rows of their tables",
       "indexes that no constraint needs, event triggers, other schemas, and settings but session_replication_role",
       "artifacts/staging and artifacts/uploads"});
  if (!report.history.redacted.empty()) {
    report.not_checked.push_back(
        "values that only erased events held: the ids in their rows, artifact.step_id, path, mime_type and size_bytes, manifest.base_id, hash and "
        "size_bytes; for an erased revision its names, artifacts, trust and chunks, and whether its row exists; for an erased retraction or "
        "revocation the documents that it ended");
  }
  const std::int64_t in_flight = report.files.in_flight + report.tiles.in_flight;
  if (in_flight > 0) {
    const std::string first = report.files.in_flight_first.empty()
                                  ? ""
                                  : fmt::format(" (the first with a staging link: {})", report.files.in_flight_first);
    report.warnings.push_back(fmt::format(
        "{} files have no event yet: they are newer than this verify, or a put was interrupted{}", in_flight, first));
  }
  if (report.tiles.unfinished) report.not_checked.push_back("tiles/.new (an unfinished write, which is unused)");
}

}  // namespace

Report verify(const Options& options) {
  const Clock clock;
  Report report;
  report.place = options.place;
  report.started = clock.now();
  auto root = ArtifactRoot::open(options.artifacts);
  const auto end = fix_end(options);
  auto kept = read_kept_files(options.notes);  // before the snapshot, because signed events were committed earlier
  auto snapshot = SharedSnapshot::take(options.uri);
  if (!kept || !root || !end || !snapshot) {
    report.problem = !kept       ? kept.error().message
                     : !end      ? end.error().message
                     : !snapshot ? snapshot.error().message
                                 : root.error().message;
  } else {
    Verification verification(options, *end, *std::move(kept), *std::move(snapshot), report);
    const Status outcome = verification.run(*root);
    if (!outcome && report.log_id.empty()) {
      report.problem = outcome.error().message;  // no event was read
    } else {
      judge(report, verification.findings(), outcome);
      const bool clean = report.findings_count == 0 && outcome.ok() && report.problem.empty();
      const Status saved = clean ? verification.save() : success();
      if (!saved) report.warnings.push_back(report.unsaved = saved.error().message);
    }
  }
  say_what_is_missing(report);
  report.ended = clock.now();
  return report;
}

}  // namespace muniment::verify
