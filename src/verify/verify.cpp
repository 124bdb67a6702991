#include "verify/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "verify/log.hpp"
#include "verify/parallel.hpp"
#include "verify/shared_snapshot.hpp"

namespace muniment::verify {
namespace {

constexpr std::int64_t events_a_span = 8'192;
constexpr std::int64_t spans_ahead_a_job = 2;  // scanned and waiting for their turn

// Hands out spans to the scanning threads and their results, in order, to the one that joins them.
class SpanQueue {
 public:
  SpanQueue(std::int64_t spans, unsigned jobs) : spans_(spans), ahead_max_(spans_ahead_a_job * jobs) {}

  // The next span to scan; nullopt: no more.
  std::optional<std::int64_t> claim() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || claimed_ >= spans_ || claimed_ < joined_ + ahead_max_; });
    if (stopped_ || claimed_ >= spans_) return std::nullopt;
    return claimed_++;
  }

  void put(std::int64_t number, Span span) {
    const std::lock_guard lock(mutex_);
    ready_.emplace(number, std::move(span));
    changed_.notify_all();
  }

  // The next span in order; nullopt: all are joined, or a scan failed.
  std::optional<Span> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || joined_ == spans_ || ready_.contains(joined_); });
    if (stopped_ || joined_ == spans_) return std::nullopt;
    Span span = std::move(ready_.extract(joined_).mapped());
    ++joined_;
    changed_.notify_all();
    return span;
  }

  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }

 private:
  const std::int64_t spans_;
  const std::int64_t ahead_max_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::int64_t, Span> ready_;
  std::int64_t claimed_ = 0, joined_ = 0;
  bool stopped_ = false;
};

class Verification {
 public:
  Verification(const Options& options, KeptFiles kept, SharedSnapshot snapshot, Report& report)
      : options_(options), kept_(std::move(kept)), snapshot_(std::move(snapshot)), report_(report) {}

  // What has been found so far counts even when this ends in an error.
  Status run(const ArtifactRoot& root) {
    std::vector<std::int64_t> others;
    ASSIGN_OR_RETURN(log_, find_log(snapshot_.holder(), options_.log_no, others));
    for (const std::int64_t other : others) report_.not_checked.push_back(fmt::format("log {} of this database (--log {})", other, other));
    report_.log_id = log_.log_id.text();
    report_.upto = log_.upto;
    RETURN_IF_ERROR(check_partitions(snapshot_.holder(), log_, findings_));
    RETURN_IF_ERROR(read_run_ids(snapshot_.holder(), log_));
    SignedLog signatures(log_.log_id, std::move(kept_), report_.started, findings_);
    RETURN_IF_ERROR(signatures.open_stored(snapshot_.holder(), log_.log_no, log_.from));
    ASSIGN_OR_RETURN(std::optional<TileFiles> tiles, open_tiles(signatures.published()));
    ASSIGN_OR_RETURN(History history, History::open(snapshot_.holder(), log_, signatures, tiles ? &*tiles : nullptr, findings_));
    const Status read = read_events(history);
    report_.history = history.counts();
    report_.signatures = signatures.outcome();
    report_.warnings.insert(report_.warnings.end(), signatures.warnings().begin(), signatures.warnings().end());
    if (tiles) report_.tiles = tiles->counts();
    RETURN_IF_ERROR(read);
    const FileWork files{snapshot_, log_, root, history.redacted_artifacts(), findings_};
    progress("files", 0, report_.history.tables.artifacts);
    RETURN_IF_ERROR(check_files(files, options_.jobs, report_.files));
    progress("unknown files", 0, 0);
    RETURN_IF_ERROR(check_unknown_files(files, report_.files));
    progress("snapshots", 0, report_.history.tables.snapshots);
    return check_snapshots({snapshot_, log_, root, history.redacted_artifacts(), findings_}, options_.jobs, report_.snapshots);
  }

  const Findings& findings() const { return findings_; }

 private:
  Result<std::optional<TileFiles>> open_tiles(std::int64_t published) {
    auto tiles = TileFiles::open(options_.notes.tiles, published, report_.started, options_.jobs, findings_);
    if (tiles) {
      if (published == 0) report_.not_checked.push_back("whether tiles are missing (none were published with a checkpoint)");
      return std::optional(*std::move(tiles));
    }
    if (tiles.error().code != Errc::not_found && !options_.notes.tiles.empty()) return std::move(tiles).error();
    report_.not_checked.push_back(options_.notes.tiles.empty() ? "tiles" : "tiles (there is no " + options_.notes.tiles + ")");
    return std::optional<TileFiles>();
  }

  Status read_events(History& history) {
    SpanQueue queue((log_.upto + events_a_span) / events_a_span, options_.jobs);
    Status scanned = success();
    std::jthread scanners([&] {
      scanned = in_parallel(options_.jobs, [&](unsigned) { return scan_spans(queue); });
    });
    Status joined = success();
    while (auto span = queue.take()) {
      if (joined = history.add(*std::move(span)); !joined) queue.stop();
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
      while (const auto number = queue.claim()) {
        const std::int64_t begin = *number * events_a_span;
        const std::int64_t end = std::min(begin + events_a_span, log_.upto + 1);
        ASSIGN_OR_RETURN(Span span, scan(connection, log_, begin, end, findings_));
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
  KeptFiles kept_;
  SharedSnapshot snapshot_;
  Report& report_;
  Log log_;
  Findings findings_;
};

void judge(Report& report, const Findings& findings, const Status& outcome) {
  report.findings = findings.first();
  report.findings_count = findings.count();
  if (!outcome) report.problem = outcome.error().message;
  if (outcome.ok() && !report.files.unread.empty()) {
    report.problem = fmt::format("{} files could not be read, first {}", report.files.unread.size(), report.files.unread.front());
  }
  if (report.findings_count > 0) {
    report.verdict = Verdict::tampered;
  } else if (!report.problem.empty()) {
    report.verdict = Verdict::incomplete;
  } else {
    report.verdict = report.signatures.upto >= 0 ? Verdict::verified : Verdict::is_unsigned;
  }
}

void say_what_is_missing(Report& report) {
  if (report.signatures.without_key) {
    report.not_checked.insert(report.not_checked.begin(), "signatures (no key was given: --key FILE)");
  } else if (report.signatures.checkpoints == 0) {
    report.not_checked.insert(report.not_checked.begin(), "signatures (the log has no signed checkpoints)");
  }
  if (report.snapshots.not_folded > 0) {
    report.not_checked.push_back(fmt::format("the fold of {} snapshots: an artifact that it needs is missing or damaged",
                                             report.snapshots.not_folded));
  }
  report.not_checked.insert(report.not_checked.end(), {"search indexes", "pointer catalogue"});
  const std::int64_t in_flight = report.files.in_flight + report.tiles.in_flight;
  if (in_flight > 0) report.warnings.push_back(fmt::format("{} files are newer than this verify", in_flight));
}

}  // namespace

Report verify(const Options& options) {
  const Clock clock;
  Report report;
  report.started = clock.now();
  auto kept = read_kept_files(options.notes);  // before the snapshot: what is signed was committed before
  auto root = ArtifactRoot::open(options.artifacts);
  auto snapshot = SharedSnapshot::take(options.uri);
  if (!kept || !root || !snapshot) {
    report.problem = !kept ? kept.error().message : !snapshot ? snapshot.error().message : root.error().message;
  } else {
    Verification verification(options, *std::move(kept), *std::move(snapshot), report);
    const Status outcome = verification.run(*root);
    if (!outcome && report.log_id.empty()) {
      report.problem = outcome.error().message;  // not one event was read
    } else {
      judge(report, verification.findings(), outcome);
    }
  }
  say_what_is_missing(report);
  report.ended = clock.now();
  return report;
}

}  // namespace muniment::verify
