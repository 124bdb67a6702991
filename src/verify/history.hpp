// Joins the spans in order: seq without a gap, the hashes that waited for the span before, run_seq
// and the life of every run, the tree and its checkpoints, and the tables beside the log.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "verify/finding.hpp"
#include "verify/hashing.hpp"
#include "verify/postgres.hpp"
#include "verify/run_table.hpp"
#include "verify/scan.hpp"
#include "verify/tables.hpp"

namespace muniment::verify {

struct HistoryCounts {
  std::int64_t events = 0;
  std::int64_t runs = 0;
  std::int64_t halted_without_reason = 0;
  std::int64_t checkpoints = 0;
  std::array<std::int64_t, 4> origins{};
  std::vector<std::int64_t> redacted;
  TableCounts tables;
  Hash root{};
};

class History {
 public:
  static Result<History> open(Connection& connection, const Log& log, Findings& findings);

  Status add(Span&& span);
  Status finish();  // after the last span

  const HistoryCounts& counts() const { return counts_; }
  const std::set<std::string>& redacted_artifacts() const { return redacted_artifacts_; }

 private:
  enum class Stand : std::uint8_t { not_started, open, ended, halted };
  struct Head {
    std::int64_t next_run_seq = 0;
    std::string run_hash;
    Stand stand = Stand::not_started;
    std::int64_t promise_seq = -1;  // an artifact.stored in a stopped run: the next event must be its snapshot
    std::string promise_artifact;
  };
  struct Point {                    // a row of checkpoint
    std::int64_t size = 0;
    std::string root, edge;
  };

  History(Connection& connection, const Log& log, Findings& findings, Tables tables, Cursor checkpoints);
  Status advance_checkpoint();
  Status check_points(std::int64_t size);
  void resolve(const Span& span, SeenEvent& event, const Waiting& waiting);
  Status follow(const SeenEvent& event, const Telling* telling);
  void live(Head& head, const SeenEvent& event, const Telling* telling);
  void check_promise(Head& head, const SeenEvent* event, const Telling* telling, std::int64_t run_no);
  void note_redaction(const Telling& telling);
  void found(Check check, const SeenEvent& event, std::string expected, std::string actual);

  Connection& connection_;
  const Log& log_;
  Findings& findings_;
  Tables tables_;
  RunTable runs_;
  Cursor checkpoints_;
  std::optional<Point> checkpoint_;  // the next one; none are left when empty
  Tree tree_;
  std::int64_t next_seq_ = 0;
  std::unordered_map<std::int64_t, Head> heads_;
  std::set<std::int64_t> announced_;  // seqs that event.redacted names
  std::set<std::string> redacted_artifacts_;
  HistoryCounts counts_;
};

}  // namespace muniment::verify
