// Collects the data of a report in one pass over the run's events. Lists are bounded and count omitted items, so that
// the report of a run of any length can be opened.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "cli/chain_check.hpp"
#include "cli/report/document.hpp"

namespace muniment::cli {

inline constexpr std::size_t report_rows_max = 500;
inline constexpr std::size_t report_timeline_rows_max = 1'000;  // limit for the first rows and for the last rows

// The first rows of a table and the total number of rows.
struct ReportRows {
  std::vector<ReportRow> rows;
  std::size_t total = 0;

  void add(std::vector<std::string> cells, Mark mark = Mark::none) {
    if (total++ < report_rows_max) rows.push_back({std::move(cells), mark});
  }
};

struct ToolUse {
  std::int64_t calls = 0;
  std::int64_t ok = 0;
  std::int64_t failed = 0;
  std::int64_t unknown = 0;  // the status was not reported
};

// The answers of one model, with the tokens and costs that the writers reported.
struct ModelUse {
  std::int64_t answers = 0;
  std::int64_t failed = 0;
  std::int64_t without_usage = 0;  // answers without a count of tokens
  std::int64_t input = 0;
  std::int64_t cached = 0;  // part of the input tokens
  std::int64_t output = 0;
  std::int64_t reasoning = 0;          // part of the output tokens
  std::map<std::string, double> cost;  // recorded cost by currency
  double estimated_usd = 0;            // estimates of costs that were not recorded

  void add(const ModelUse& other);
};

// The run's checkpoint and the inclusion proof of its last event.
struct ReportCustody {
  std::string origin_line;
  std::int64_t size = -1;  // size of the checkpoint; -1: no checkpoint
  std::string root;
  std::string note;
  bool is_signed = false;
  std::vector<std::string> keys;        // vkeys claimed by the log
  std::vector<std::string> signed_by;   // keys with valid signatures
  std::optional<std::string> unproven;  // the reason; nullopt: the last event is proven
  std::string unsigned_why;             // the reason why `is_signed` is false
};

// The state in which the events of a run leave it, which the events prove. The status of run.get is a row of a table.
struct ReportEnd {
  std::string status = "open";
  std::string outcome;    // of an ended run; empty: its body is erased
  std::int64_t seq = -1;  // seq of the run.ended or run.halted

  void follow(std::string_view type, std::int64_t at, const json::Value& body);
  std::string text() const;  // "ended with success at seq 5"
};

struct ReportData {
  std::string written_at;
  std::string run_id;
  std::string log_id;
  bool from_bundle = false;                    // the data are those of a verified bundle, without a daemon
  std::map<std::string, std::string> run;      // result of run.get, as text
  std::map<std::string, std::string> started;  // members of run.started: client, cwd, vcs, import …
  std::vector<std::pair<std::string, std::string>> labels;
  std::optional<ChainCheck> chain;
  ReportCustody custody;

  std::map<std::string, std::int64_t> origins, actors, types;
  std::int64_t events = 0;  // number in the log, even if the chain is broken
  std::int64_t first_seq = -1;
  std::int64_t last_seq = -1;
  ReportEnd end;
  std::vector<ReportRow> timeline_first;
  std::deque<ReportRow> timeline_last;
  std::map<std::string, ToolUse> tools;
  std::map<std::string, ModelUse> models;
  std::string price_list;  // version of the prices of the estimates; empty: no estimate
  ReportRows commands, files, approvals, claims, evidence, reads, halts, redactions, artifacts;
  ReportRows late, interrupted, pending;
  std::set<std::int64_t> erased;  // run_seq of events without a body
  std::int64_t pending_dropped = 0;
  bool pending_known = true;           // false: the run's state could not be read
  std::int64_t claims_unverified = 0;  // claims that are neither supported nor withdrawn
  std::int64_t commands_started = 0;
  std::int64_t begun = 0;           // calls, commands, approvals, children and steps
  std::int64_t failed_calls = 0;    // answers, results, commands and steps that failed
  std::int64_t erased_spans = 0;    // events without a body that begin or end a call, a command, an approval or a child
  std::int64_t erased_results = 0;  // number of erased events that held a status

  Time recorded_first, recorded_last;
  std::optional<Time> occurred_first, occurred_last;
  std::int64_t with_occurred = 0;
  std::int64_t backwards = 0;  // events recorded earlier than their predecessors
  ReportRows clock_steps;
  std::optional<std::string> clock_steps_unknown;
  std::int64_t starts = 0;  // starts of the daemon between the run's first event and its last
};

// The sections of the report.
ReportDocument report_document(const ReportData& data);

}  // namespace muniment::cli
