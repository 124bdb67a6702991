// The verification of one log, from its rows and files alone, to a verdict (docs/format.md says
// what must hold). It runs beside a busy daemon: everything is read in one snapshot.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "verify/files/files.hpp"
#include "verify/finding.hpp"
#include "verify/indexes/indexes.hpp"
#include "verify/log/history.hpp"
#include "verify/signed/note_files.hpp"
#include "verify/signed/signed_log.hpp"
#include "verify/signed/tiles.hpp"
#include "verify/state/snapshots.hpp"
#include "verify/verdict.hpp"

namespace muniment::verify {

struct Options {
  std::string uri;
  LogPlace place;  // as the report is to name it
  std::string artifacts;
  std::string archive;  // folder of the bodies of archived partitions
  NotePlaces notes;     // where keys, checkpoints and tiles are kept
  std::string indexes;  // the folder of the search indexes; empty: they are not looked at
  std::string resume;   // a saved state to go on from; empty: from the beginning
  std::string save;     // where to keep how far it got; empty: nowhere
  std::optional<std::int64_t> log_no;
  unsigned jobs = 2;
  // Called now and then: what is being done, and how much of it.
  std::function<void(const char* doing, std::int64_t done, std::int64_t of)> progress;
};

// The events that no trusted signature covers, of a log of which others are signed.
struct UnsignedTail {
  std::int64_t from = -1;  // the first
  std::int64_t events = 0;
  Time since, until;  // when the first and the last of them were recorded, as they say
  bool live = false;  // a daemon held the log, and did not sign them while this waited
};

struct Report {
  Verdict verdict = Verdict::unreadable;
  std::string problem;         // why it is unreadable or incomplete, or its schema unknown
  std::string unknown_schema;  // why the definitions cannot be compared
  std::string log_id;
  std::string run_id;              // of a bundle: the report is on this run alone
  std::optional<LogPlace> place;   // of a log
  std::int64_t upto = -1;          // the last seq that the verdict is about
  std::int64_t newer = 0;          // events that came behind it while this verify began: chained, not yet signed
  std::int64_t resumed_from = -1;  // the first seq that was read, if an earlier verify read what is before
  HistoryCounts history;
  FileCounts files;
  SnapshotCounts snapshots;
  Signatures signatures;
  std::optional<UnsignedTail> tail;
  TileCounts tiles;
  std::optional<IndexCounts> indexes;
  std::vector<Finding> findings;  // the first of them
  std::size_t findings_count = 0;
  std::vector<std::string> warnings;
  std::vector<std::string> not_checked;
  std::string unsaved;  // why the state that was to be kept is not
  Time started, ended;
};

Report verify(const Options& options);

}  // namespace muniment::verify
