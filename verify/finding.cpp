#include "verify/finding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <tuple>

#include "base/text.hpp"

namespace muniment::verify {
namespace {

constexpr std::size_t findings_kept_max = 100;
constexpr std::size_t shown_bytes_max = 200;

struct CheckText {
  Check check;
  std::string_view name;
  std::string_view meaning;
};

constexpr std::array check_texts{
    CheckText{Check::partition, "partition",
              "a partition of the event table is detached or covers other events than its name says"},
    CheckText{Check::seq, "seq",
              "events are missing from the log or occur twice: rows were deleted, inserted or renumbered"},
    CheckText{Check::body_hash, "body_hash",
              "the body, the salt or the body_hash of this event was changed after it was written"},
    CheckText{Check::redaction, "redaction", "a body was erased without the event.redacted that an erasure appends"},
    CheckText{Check::run_seq, "run_seq", "events of this run are missing or were renumbered"},
    CheckText{Check::run_chain, "run_chain",
              "a hashed column of this event, or the run_hash before it, was changed after it was written"},
    CheckText{Check::transition, "transition", "the state of the run did not permit this event"},
    CheckText{Check::checkpoint_root, "checkpoint_root",
              "the events do not match the checkpoint: history before it was rewritten or truncated"},
    CheckText{Check::checkpoint_signature, "checkpoint_signature",
              "a checkpoint is not signed by the log's key or was forged: its content proves nothing"},
    CheckText{Check::log_rolled_back, "log_rolled_back",
              "the log was longer: events at its end were removed, or an old copy replaced it"},
    CheckText{Check::published_checkpoint, "published_checkpoint",
              "the checkpoint published with the tiles is missing or older than the newest signed one: readers of the "
              "tiles do not see the later events, and the tiles of these were not checked"},
    CheckText{Check::tile, "tile", "a tile or entry bundle does not match the events"},
    CheckText{Check::bundle, "bundle",
              "a part of the bundle does not match bundle.json: it was changed after the export"},
    CheckText{Check::proof, "proof", "the entry is not in the log of the checkpoint, or does not match the proof"},
    CheckText{Check::receipt, "receipt", "the receipt or the body does not match this entry"},
    CheckText{Check::capsule, "capsule", "a part of the capsule was changed after it was written, or is missing"},
    CheckText{Check::artifact_row, "artifact_row", "the artifact table does not match the artifact.stored event"},
    CheckText{
        Check::artifact_file, "artifact_file",
        "the artifact's file is missing, is not a regular file below the artifact root, or has another hard link through which it can be changed"},
    CheckText{Check::artifact_hash, "artifact_hash", "the artifact's file does not hold the bytes that were stored"},
    CheckText{Check::artifact_pieces, "artifact_pieces",
              "the artifact is intact, but the pieces that verify its slices do not match it"},
    CheckText{Check::unknown_file, "unknown_file",
              "no event names this file: another program wrote it, or its event was deleted"},
    CheckText{Check::manifest, "manifest", "the manifest or its row does not match the manifest.recorded event"},
    CheckText{Check::snapshot, "snapshot", "the snapshot's row does not match the snapshot.taken event"},
    CheckText{Check::snapshot_hash, "snapshot_hash", "the snapshot's state does not match its recorded hash"},
    CheckText{Check::snapshot_fold, "snapshot_fold", "the run's events fold to a state that differs from the snapshot"},
    CheckText{Check::claim, "claim", "the claim table does not match the claim events"},
    CheckText{Check::evidence, "evidence", "the evidence table does not match the evidence.recorded event"},
    CheckText{Check::evidence_link, "evidence_link",
              "the evidence_link table does not match the evidence.linked event"},
    CheckText{Check::task_change, "task_change",
              "the task_change table does not match the task.opened and task.completed events"},
    CheckText{
        Check::task_evidence, "task_evidence",
        "the task_evidence table does not match the task.completed event: evidence is recorded as used by another "
        "task than the one that it completed, or as unused"},
    CheckText{Check::corpus, "corpus", "the corpus table does not match the events of its documents"},
    CheckText{Check::document, "document", "the document table does not match the events of this document"},
    CheckText{Check::chunk, "chunk", "the chunk table does not match the document.revised event for this passage"},
    CheckText{Check::passage, "passage",
              "the bytes of this passage do not match the hash in the document.revised event"},
    CheckText{Check::feedback, "feedback", "the feedback table does not match the feedback.recorded event"},
    CheckText{Check::run_table, "run_table", "the run table does not match the run's events"},
    CheckText{
        Check::erasure, "erasure",
        "the log records the erasure of this event, but a table holds its content: the erasure was not completed, or the content was restored"},
    CheckText{Check::value_size, "value_size", "a value is over 64 KiB, which no CHECK of the tables allows"},
    CheckText{Check::foreign_row, "foreign_row",
              "rows belong to a log that this database does not hold: no event accounts for them"},
    CheckText{Check::follower, "follower",
              "a follower's position is past the end of the log: it would skip the next events"},
    CheckText{Check::archived_partition, "archived_partition",
              "the archived_partition table does not match the log.archived event"},
    CheckText{Check::migration, "migration", "the schema_migration table does not match the migrations of this schema"},
    CheckText{Check::definition, "definition",
              "a view, function, trigger, rule, policy, column or constraint differs from the migrations: results read "
              "through it may be wrong"},
};

const CheckText& check_text(Check check) { return check_texts[static_cast<std::size_t>(check)]; }

// Names the data folder that was verified. Without --data a command uses the default one.
std::string muniment_command(const LogPlace& place, const std::string& words) {
  return (place.data.empty() ? "muniment " : "muniment --data " + shell_word(place.data) + " ") + words;
}

std::string sql_command(const LogPlace& place, std::string_view statement) {
  const std::string database =
      place.uri_file.empty() ? "URI" : fmt::format("\"$(cat {})\"", shell_word(place.uri_file));
  return fmt::format("psql {} -c '{}'", database, statement);
}

}  // namespace

std::string shown(std::string_view column, const std::optional<std::string>& value) {
  return fmt::format("{} = {}", column, value ? preview(*value, shown_bytes_max) : "NULL");
}

std::string_view name_of(Check check) { return check_text(check).name; }

std::string meaning_of(const Finding& finding) { return std::string(check_text(finding.check).meaning); }

std::string next_of(const Finding& finding, const LogPlace* place) {
  if (finding.check == Check::proof || finding.check == Check::receipt) return "muniment audit prove SEQ -o FILE";
  if (place == nullptr) return {};
  switch (finding.check) {
    case Check::artifact_file:
    case Check::artifact_hash: return muniment_command(*place, "recover " + shell_word(finding.run_id));
    case Check::corpus:
    case Check::document:
    case Check::chunk:
    case Check::feedback:
    case Check::erasure:
    case Check::run_table: return muniment_command(*place, "rebuild");
    case Check::snapshot_hash:
    case Check::snapshot_fold: return muniment_command(*place, "snapshot list --run " + shell_word(finding.run_id));
    case Check::unknown_file: return "ls -l " + shell_word(finding.actual);
    case Check::follower: return muniment_command(*place, "rebuild");
    case Check::partition:
    case Check::archived_partition: return sql_command(*place, "\\d+ event");
    case Check::foreign_row: return sql_command(*place, "SELECT log_no, log_id FROM log_head");
    case Check::migration: return sql_command(*place, "SELECT number, name, sha256 FROM schema_migration ORDER BY 1");
    case Check::definition: return muniment_command(*place, "doctor");
    case Check::seq:
    case Check::body_hash:
    case Check::redaction:
    case Check::run_seq:
    case Check::run_chain:
    case Check::transition:
    case Check::checkpoint_root:
    case Check::checkpoint_signature:
    case Check::log_rolled_back:
    case Check::published_checkpoint:
    case Check::tile:
    case Check::bundle:
    case Check::proof:
    case Check::receipt:
    case Check::capsule:
    case Check::artifact_row:
    case Check::artifact_pieces:
    case Check::manifest:
    case Check::snapshot:
    case Check::claim:
    case Check::evidence:
    case Check::evidence_link:
    case Check::task_change:
    case Check::task_evidence:
    case Check::passage:
    case Check::value_size: break;
  }
  if (finding.seq < 0) return muniment_command(*place, "doctor");
  return sql_command(*place, fmt::format("SELECT * FROM event WHERE seq BETWEEN {} AND {}",
                                         std::max<std::int64_t>(0, finding.seq - 1), finding.seq + 1));
}

bool Findings::Earlier::operator()(const Finding& a, const Finding& b) const {
  const auto order = [](const Finding& f) { return std::tuple(f.seq < 0, f.seq, f.check, std::string_view(f.actual)); };
  return order(a) < order(b);
}

void Findings::add(Finding finding) {
  const std::lock_guard lock(mutex_);
  ++count_;
  ++count_of_[finding.run_id];
  kept_.insert(std::move(finding));
  if (kept_.size() > findings_kept_max) kept_.erase(std::prev(kept_.end()));
}

void Findings::add_all(const Findings& others) {
  const std::scoped_lock lock(mutex_, others.mutex_);
  count_ += others.count_;
  for (const auto& [run_id, count] : others.count_of_) count_of_[run_id] += count;
  kept_.insert(others.kept_.begin(), others.kept_.end());
  while (kept_.size() > findings_kept_max) kept_.erase(std::prev(kept_.end()));
}

std::size_t Findings::add_others_than_of(const std::set<std::string>& runs, const Findings& others) {
  const std::scoped_lock lock(mutex_, others.mutex_);
  std::size_t left_out = 0, taken = 0;
  for (const auto& [run_id, count] : others.count_of_) (runs.contains(run_id) ? left_out : taken) += count;
  const std::size_t before = kept_.size();
  std::ranges::copy_if(others.kept_, std::inserter(kept_, kept_.end()),
                       [&](const Finding& finding) { return !runs.contains(finding.run_id); });
  // If all kept findings concern these runs, no finding of other runs can be shown, and their number counts as 0.
  if (kept_.size() == before) return left_out + taken;
  count_ += taken;
  while (kept_.size() > findings_kept_max) kept_.erase(std::prev(kept_.end()));
  return left_out;
}

std::size_t Findings::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

std::vector<Finding> Findings::first() const {
  const std::lock_guard lock(mutex_);
  return {kept_.begin(), kept_.end()};
}

}  // namespace muniment::verify
