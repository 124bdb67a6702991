#include "verify/portable/bundle.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.hpp"
#include "verify/log/run_facts.hpp"
#include "verify/log/run_life.hpp"
#include "verify/portable/bundle_archive.hpp"
#include "verify/portable/bundle_rows.hpp"
#include "verify/portable/bundle_tree.hpp"
#include "verify/signed/checkpoint_file.hpp"
#include "verify/tables/run_table.hpp"

namespace muniment::verify {
namespace {

constexpr std::size_t events_a_span = 4'096;

class KeptPatches : public PatchSource {
 public:
  explicit KeptPatches(const BundleArchive& bundle) : bundle_(bundle) {}

  Result<std::optional<std::string>> bytes(const std::string& artifact_id) override {
    const auto kept = bundle_.kept().find(artifact_id);
    if (kept == bundle_.kept().end()) return std::optional<std::string>();
    return std::optional(kept->second);
  }

 private:
  const BundleArchive& bundle_;
};

FoldEvent fold_event_of(const EventView& event) {
  FoldEvent folded;
  folded.seq = event.seq;
  folded.run_seq = event.run_seq;
  folded.recorded_at = event.recorded_at;
  folded.type = event.type;
  folded.origin = event.origin;
  if (event.step_id) folded.step_id = *event.step_id;
  folded.run_hash = to_hex(event.run_hash);
  if (event.body) folded.body = *event.body;
  folded.erased = !event.body;
  return folded;
}

class BundleVerification {
 public:
  BundleVerification(const BundleOptions& options, BundleArchive bundle, Report& report, Findings& findings)
      : options_(options),
        bundle_(std::move(bundle)),
        report_(report),
        findings_(findings),
        life_(log_, findings_),
        runs_(log_, findings_) {
    const BundleIndex& index = bundle_.index();
    log_.log_id = index.log_id;
    log_.run_ids.emplace(index.run_no, index.run_id);
    report_.log_id = index.log_id.text();
    report_.run_id = index.run_id;
  }

  Status run(const std::vector<VerifierKey>& keys) {
    ASSIGN_OR_RETURN(Tables tables, Tables::open(bundle_rows(bundle_), log_, Extent::part, findings_));
    RETURN_IF_ERROR(read_events(tables));
    RETURN_IF_ERROR(tables.finish());
    life_.finish();
    report_.history.tables = tables.counts();
    report_.history.halted_without_reason = runs_.halted_without_reason();
    report_.history.runs = report_.history.events > 0 ? 1 : 0;
    check_redactions();
    RETURN_IF_ERROR(check_tree(keys));
    progress("files", 0);
    RETURN_IF_ERROR(bundle_.read_artifacts(wanted_patches_, findings_));
    ASSIGN_OR_RETURN(const auto claims, artifact_claims(bundle_));
    check_files(claims);
    progress("snapshots", 0);
    RETURN_IF_ERROR(check_snapshots(claims));
    report_.run_end = end_;
    return success();
  }

 private:
  // Calls `take` with every event in file order.
  template <typename Take>
  Status each_event(Take take) {
    LineReader lines(bundle_.text(BundleText::events));
    while (true) {
      ASSIGN_OR_RETURN(const auto line, lines.next());
      if (!line) return success();
      ASSIGN_OR_RETURN(const std::unique_ptr<BundleEvent> event, parse_bundle_event(*line));
      RETURN_IF_ERROR(take(event->view));
    }
  }

  Status read_events(Tables& tables) {
    Scanner scanner(log_, findings_);
    std::size_t waiting = 0;
    std::int64_t last_seq = -1;
    RETURN_IF_ERROR(each_event([&](const EventView& event) -> Status {
      if (event.run_no != bundle_.index().run_no)
        found(Check::bundle, event.seq, fmt::format("run_no {}", bundle_.index().run_no),
              fmt::format("run_no {}", event.run_no));
      if (event.seq <= last_seq || event.seq >= bundle_.index().size) {
        return Error(Errc::corrupt, fmt::format("events.jsonl: seq {} after {}, in a log of {}", event.seq, last_seq,
                                                bundle_.index().size));
      }
      if (leaves_.size() + waiting == limits::bundle_events_max)
        return Error(Errc::too_large, fmt::format("over {} events", limits::bundle_events_max));
      last_seq = event.seq;
      scanner.take(event);
      const std::string patch = event.type == "state.patched" ? spilled_patch_of(fold_event_of(event)) : "";
      if (!patch.empty()) wanted_patches_.insert(patch);
      return ++waiting < events_a_span ? success() : (waiting = 0, join(scanner.drain(), tables));
    }));
    RETURN_IF_ERROR(join(scanner.drain(), tables));
    report_.upto = last_seq;
    if (report_.history.events != bundle_.index().events) {
      found(Check::bundle, -1, fmt::format("{} events, as bundle.json says", bundle_.index().events),
            fmt::format("{} events", report_.history.events));
    }
    return success();
  }

  Status join(Span span, Tables& tables) {
    auto telling = span.telling.begin();
    for (std::size_t i = 0; i < span.events.size(); ++i) {
      const SeenEvent& event = span.events[i];
      const Telling* const tells = telling != span.telling.end() && telling->index == i ? &*telling++ : nullptr;
      life_.follow(event, tells);
      leaves_.emplace_back(event.seq, event.leaf);
      if (tells == nullptr) continue;
      if (event.life == Life::started) check_start(event, *tells);
      if (tells->type.starts_with("run.")) {
        runs_.see(event, *tells);
        note_end(event, *tells);
      }
      RETURN_IF_ERROR(tables.see(event, *tells));
    }
    for (std::size_t origin = 1; origin < span.origins.size(); ++origin)
      report_.history.origins[origin] += span.origins[origin];
    report_.history.redacted.insert(report_.history.redacted.end(), span.redacted.begin(), span.redacted.end());
    report_.history.events += static_cast<std::int64_t>(span.events.size());
    progress("events", report_.history.events);
    // Without its first event the chain has no beginning that a hash could confirm.
    for (const Waiting& event : span.waiting)
      found(Check::run_seq, span.events[event.index].seq, "run_seq 0 at the beginning", "a later event");
    return success();
  }

  void check_start(const SeenEvent& event, const Telling& telling) {
    const auto document = json::parse(telling.json());
    const Text run_id = document ? text_of(document->root(), "run_id") : Text();
    if (!telling.redacted && run_id != bundle_.index().run_id) {
      found(Check::bundle, event.seq, shown("run_id", bundle_.index().run_id), shown("run_id", run_id));
    }
  }

  void note_end(const SeenEvent& event, const Telling& telling) {
    if (event.life == Life::started || event.life == Life::resumed) end_ = {};
    if (event.life == Life::halted) end_ = {Stand::halted, event.seq, std::nullopt};
    if (event.life != Life::ended) return;
    const auto document = json::parse(telling.json());
    end_ = {Stand::ended, event.seq, document ? text_of(document->root(), "outcome") : Text()};
  }

  void check_redactions() {
    for (const std::int64_t seq : report_.history.redacted) {
      if (!life_.announced().contains(seq))
        found(Check::redaction, seq, "an event.redacted of this run that names this seq", "none");
    }
    const std::set<std::int64_t> erased(report_.history.redacted.begin(), report_.history.redacted.end());
    for (const auto& [seq, leaf] : leaves_) {
      if (life_.announced().contains(seq) && !erased.contains(seq))
        found(Check::erasure, seq, "nothing of what was erased", "an event with its body");
    }
  }

  Status check_tree(const std::vector<VerifierKey>& keys) {
    ASSIGN_OR_RETURN(const std::string text, bundle_.whole_text(BundleText::checkpoint, limits::note_bytes_max));
    ASSIGN_OR_RETURN(const CheckpointFile file, parse_checkpoint_file(text));
    const BundleIndex& index = bundle_.index();
    if (file.checkpoint.origin != index.origin || file.checkpoint.size != index.size) {
      found(Check::bundle, -1, fmt::format("a checkpoint of {} with {} events", index.origin, index.size),
            fmt::format("one of {} with {}", file.checkpoint.origin, file.checkpoint.size));
    }
    report_.signatures = judge_checkpoint(file, log_.log_id, keys, findings_);
    KnownNodes nodes;
    LineReader lines(bundle_.text(BundleText::nodes));
    while (true) {
      ASSIGN_OR_RETURN(const auto line, lines.next());
      if (!line) break;
      ASSIGN_OR_RETURN(auto node, parse_node(*line));
      if (!nodes.empty() && node.first <= nodes.rbegin()->first) return Error(Errc::corrupt, "nodes: not in order");
      if (nodes.size() == limits::bundle_nodes_max)
        return Error(Errc::too_large, fmt::format("over {} nodes", limits::bundle_nodes_max));
      nodes.emplace_hint(nodes.end(), std::move(node));
    }
    const auto root = root_of_known(file.checkpoint.size, leaves_, nodes);
    report_.history.root = file.checkpoint.root;
    if (!root || *root != file.checkpoint.root) {
      found(Check::checkpoint_root, -1,
            fmt::format("{} after {} events", to_hex(file.checkpoint.root), file.checkpoint.size),
            root ? to_hex(*root) : root.error().message);
    }
    return success();
  }

  void check_files(const std::map<std::string, ArtifactClaim>& claims) {
    const std::set<std::int64_t> erased(report_.history.redacted.begin(), report_.history.redacted.end());
    for (const auto& [id, claim] : claims) {
      const std::string wanted = fmt::format("{} bytes with sha256 {}", claim.size_bytes, claim.hash);
      const auto file = bundle_.artifacts().find(id);
      if (file == bundle_.artifacts().end()) {
        if (!life_.redacted_artifacts().contains(id))
          found(Check::artifact_file, claim.seq, wanted, fmt::format("no artifacts/{}", id));
        continue;
      }
      ++report_.files.files;
      report_.files.bytes += file->second.size_bytes;
      const std::string held =
          fmt::format("{} bytes with sha256 {}", file->second.size_bytes, to_hex(file->second.hash));
      if (held != wanted) found(Check::artifact_hash, claim.seq, wanted, fmt::format("artifacts/{}: {}", id, held));
    }
    report_.files.unknown = 0;
    for (const auto& [id, facts] : bundle_.artifacts()) {
      if (claims.contains(id)) continue;
      ++*report_.files.unknown;
      found(Check::unknown_file, -1, "no such file", "artifacts/" + id);
    }
  }

  Status check_snapshots(const std::map<std::string, ArtifactClaim>& claims) {
    ASSIGN_OR_RETURN(const auto snapshots, bundle_snapshots(bundle_, claims));
    KeptPatches patches(bundle_);
    RunFolder folder(log_, life_.redacted_artifacts(), *snapshots, patches, findings_, report_.snapshots);
    RETURN_IF_ERROR(folder.start());
    if (bundle_.index().run_no != 0) {  // _log has no state
      RETURN_IF_ERROR(
          each_event([&](const EventView& event) { return folder.take(event.run_no, fold_event_of(event)); }));
    }
    return folder.finish();
  }

  void found(Check check, std::int64_t seq, std::string expected, std::string actual) {
    findings_.add({check, seq, bundle_.index().run_id, std::move(expected), std::move(actual)});
  }

  void progress(const char* doing, std::int64_t done) const {
    if (options_.progress) options_.progress(doing, done, bundle_.index().events);
  }

  const BundleOptions& options_;
  BundleArchive bundle_;
  Report& report_;
  Findings& findings_;
  Log log_;
  RunLife life_;
  RunTable runs_;  // used for its counts; a bundle has no run table
  KnownLeaves leaves_;
  RunEnd end_;
  std::set<std::string> wanted_patches_;
};

}  // namespace

Report verify_bundle(const BundleOptions& options) {
  const Clock clock;
  Report report;
  report.started = clock.now();
  Findings findings;
  const Status outcome = [&]() -> Status {
    ASSIGN_OR_RETURN(const std::vector<VerifierKey> keys, read_keys(options.keys));
    ASSIGN_OR_RETURN(BundleArchive bundle, BundleArchive::open(options.bundle, findings));
    return BundleVerification(options, std::move(bundle), report, findings).run(keys);
  }();
  // A bundle with malformed content was changed after the export.
  const bool changed = !outcome && outcome.error().code == Errc::corrupt;
  if (changed)
    findings.add({Check::bundle, -1, report.run_id, "a bundle as defined in docs/format.md", outcome.error().message});
  report.findings = findings.first();
  report.findings_count = findings.count();
  if (!outcome && !changed) report.problem = outcome.error().message;
  if (report.findings_count > 0) report.run_end = std::nullopt;
  report.verdict = report.findings_count > 0              ? Verdict::tampered
                   : !outcome                             ? Verdict::unreadable
                   : report.signatures.upto >= 0          ? Verdict::verified
                   : !report.signatures.wrong_key.empty() ? Verdict::wrong_key
                                                          : Verdict::is_unsigned;
  if (report.signatures.without_key) report.not_checked.push_back("signatures (no key was given: --key FILE)");
  if (outcome && report.signatures.newest.empty() && !report.signatures.without_key)
    report.not_checked.push_back("signatures (the checkpoint has none)");
  if (report.snapshots.not_folded > 0)
    report.not_checked.push_back(
        fmt::format("the fold of {} snapshots: an artifact that it needs is missing", report.snapshots.not_folded));
  report.not_checked.insert(report.not_checked.end(),
                            {"events of this run after the bundle's last (it may have been reopened)", "other runs",
                             "exported_at, README.md and report.html (no signature covers them)"});
  report.ended = clock.now();
  return report;
}

}  // namespace muniment::verify
