// Joins the spans in order. It checks that seq has no gap, the hashes that depend on an earlier span, run_seq and the
// life of every run, the tree with its checkpoints, signatures and tiles, and the tables beside the log.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "verify/finding.hpp"
#include "verify/log/hashing.hpp"
#include "verify/log/run_life.hpp"
#include "verify/log/saved_state.hpp"
#include "verify/log/scan.hpp"
#include "verify/postgres/postgres.hpp"
#include "verify/signed/signed_log.hpp"
#include "verify/signed/tiles.hpp"
#include "verify/tables/corpus_tables.hpp"
#include "verify/tables/run_table.hpp"
#include "verify/tables/tables.hpp"
#include "verify/tables/task_evidence.hpp"

namespace muniment::verify {

struct HistoryCounts {
  std::int64_t events = 0;
  std::int64_t runs = 0;
  std::int64_t halted_without_reason = 0;
  std::int64_t checkpoints = 0;
  std::array<std::int64_t, 4> origins{};
  std::vector<std::int64_t> redacted;
  std::vector<Adoption> adopted;
  TableCounts tables;
  CorpusCounts corpora;
  Hash root{};
};

// A partition whose bodies left the database.
struct ArchivedSpan {
  std::int64_t number = -1, first_seq = -1, last_seq = -1;
  auto operator<=>(const ArchivedSpan&) const = default;
};

class History {
 public:
  // `tiles`: nullptr if no tiles are checked. `resumed`: state of an earlier verify; the log begins at its end.
  static Result<History> open(Connection& connection, const Log& log, const ArtifactRoot& root, SignedLog& signatures,
                              TileFiles* tiles, const SavedState* resumed, Findings& findings);

  Status add(Span&& span);
  Status finish();  // call after the last span

  std::int64_t size() const { return tree_.size(); }
  SavedState state() const;  // call between two spans; a later verification resumes from it

  const HistoryCounts& counts() const { return counts_; }
  const std::set<std::string>& redacted_artifacts() const { return life_.redacted_artifacts(); }
  const std::set<std::int64_t>& announced() const { return life_.announced(); }  // seqs that event.redacted events name
  // Partitions that log.archived events name
  const std::set<ArchivedSpan>& archived() const { return archived_; }

 private:
  struct Point {  // a row of checkpoint
    std::int64_t size = 0;
    std::string root, edge;
  };

  History(Connection& connection, const Log& log, const ArtifactRoot& root, SignedLog& signatures, TileFiles* tiles,
          Findings& findings, Tables tables, TaskEvidence task_evidence, Cursor checkpoints);
  void resume(const SavedState& state);
  Status advance_checkpoint();
  Status check_points();
  void resolve(SeenEvent& event, const Waiting& waiting);
  Status tell(const SeenEvent& event, const Telling& telling);
  void note_archived(const Telling& telling);
  void see_start(const SeenEvent& event, const Telling& telling);

  Connection& connection_;
  const Log& log_;
  SignedLog& signatures_;
  TileFiles* tiles_;
  Findings& findings_;
  Tables tables_;
  TaskEvidence task_evidence_;
  RunTable runs_;
  CorpusTables corpora_;
  RunLife life_;
  Cursor checkpoints_;
  std::optional<Point> checkpoint_;  // the next checkpoint; empty: none are left
  Tree tree_;
  std::int64_t next_seq_ = 0;
  bool resumed_ = false;
  std::set<ArchivedSpan> archived_;
  HistoryCounts counts_;
};

}  // namespace muniment::verify
