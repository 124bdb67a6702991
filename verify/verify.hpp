// Verifies one log from its rows and files alone (docs/format.md defines the rules) and returns a verdict. It can run
// beside a busy daemon, because it reads everything in one snapshot.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "verify/files/files.hpp"
#include "verify/finding.hpp"
#include "verify/log/history.hpp"
#include "verify/signed/note_files.hpp"
#include "verify/signed/signed_log.hpp"
#include "verify/signed/tiles.hpp"
#include "verify/state/snapshots.hpp"
#include "verify/verdict.hpp"

namespace muniment::verify {

struct Options {
  std::string uri;
  LogPlace place;  // location in the words of the report
  std::string artifacts;
  std::string archive;  // folder of the bodies of archived partitions
  NotePlaces notes;     // places of keys, checkpoints and tiles
  std::string resume;   // saved state to resume from; empty: start at the beginning
  std::string save;     // file to save the state to; empty: none
  std::optional<std::int64_t> log_no;
  unsigned jobs = 2;
  // Called from time to time with the current phase and its progress.
  std::function<void(const char* doing, std::int64_t done, std::int64_t of)> progress;
};

// Events that no trusted signature covers, in a log whose earlier events are signed.
struct UnsignedTail {
  std::int64_t from = -1;  // seq of the first event
  std::int64_t events = 0;
  Time since, until;  // recorded times of the first and the last of them
  bool live = false;  // a daemon held the log but did not sign them while the verifier waited
};

// The state in which the events of a bundle leave the run. A bundle of which the end was cut off leaves it open.
struct RunEnd {
  Stand stand = Stand::open;
  std::int64_t seq = -1;               // seq of the run.ended or run.halted; -1: open
  std::optional<std::string> outcome;  // of the run.ended; nullopt: none, or it is erased
};

struct Report {
  Verdict verdict = Verdict::unreadable;
  std::string problem;         // reason why it is unreadable or incomplete
  std::string unknown_schema;  // reason why the definitions cannot be compared
  std::string log_id;
  std::string run_id;              // for a bundle: the run that the report covers
  std::optional<RunEnd> run_end;   // for a bundle without findings
  std::optional<LogPlace> place;   // for a log
  std::int64_t upto = -1;          // the last seq that the verdict covers
  std::int64_t newer = 0;          // events appended after `upto` while this verify began: chained, not yet signed
  std::int64_t resumed_from = -1;  // the first seq that was read, if an earlier verify read the events before it
  HistoryCounts history;
  FileCounts files;
  SnapshotCounts snapshots;
  Signatures signatures;
  std::optional<UnsignedTail> tail;
  TileCounts tiles;
  std::vector<Finding> findings;  // the first ones
  std::size_t findings_count = 0;
  std::vector<std::string> warnings;
  std::vector<std::string> not_checked;
  std::string unsaved;  // reason why the state was not saved
  Time started, ended;
};

Report verify(const Options& options);

}  // namespace muniment::verify
