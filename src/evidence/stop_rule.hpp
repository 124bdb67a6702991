// The stop rule: a critical pointer that does not resolve is retried once after a short pause; if the
// retry fails, its run halts with SYSTEM_ERROR, in one commit with the failures. Nothing else halts a
// run: a client's pointer to a target that the log never had, and on which nothing depends, is the client's mistake.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "evidence/halt_journal.hpp"
#include "evidence/resolver.hpp"
#include "store/append/appender.hpp"
#include "store/append/tail.hpp"
#include "store/read/reader.hpp"
#include "store/tables/runs.hpp"

namespace muniment::evidence {

inline constexpr std::chrono::milliseconds retry_pause{100};

// A pointer to be resolved, and the run that halts if it fails.
struct Wanted {
  std::string pointer;
  std::shared_ptr<store::Run> run;  // the run in which failures are logged; nullptr: not logged
  bool critical = false;            // set by the caller; the catalogue can also make it critical
  bool given = false;               // a client wrote the pointer: it halts nothing if the log never had its target
  // `run` belongs to the caller, and can halt. If false, failures are only recorded in it. _log never halts.
  bool may_halt = true;
  Depth depth = Depth::span;  // for a pointer that is not critical
  std::string whose{};        // the run for which the pointer is used, if the failure is recorded in _log
};

struct Outcome {
  struct Item {
    Resolution resolution;
    bool critical = false;
  };
  std::vector<Item> items;               // in the order of the request
  std::vector<store::Addressed> events;  // to be appended as one request; empty: no failures
  std::vector<PendingHalt> halts;        // halts for the journal, if the append fails
  // Returns the first critical pointer that did not resolve; nullptr if all of them resolved.
  const Item* damage() const;
};

class StopRule {
 public:
  StopRule(Resolver& resolver, store::Reader& reader, const store::Tail& tail, store::RunDirectory& runs, Clock& clock)
      : resolver_(resolver), reader_(reader), tail_(tail), runs_(runs), clock_(clock) {}

  // Blocks for one pause if a critical pointer is retried, however many there are. Errors: unavailable;
  // invalid_argument for a critical pointer without a run, if the caller flagged it or it does not resolve.
  Result<Outcome> resolve(const std::vector<Wanted>& wanted, bool with_text);

 private:
  bool is_critical(const Wanted& wanted, const Pointer& given) const;
  Status look_up_needed(const std::vector<Wanted>& wanted);
  Status excuse_mistakes(const std::vector<Wanted>& wanted, Outcome& outcome);
  Status log_failures(const std::vector<Wanted>& wanted, const std::vector<bool>& retried, Outcome& outcome);
  static Status check_run_named(const Wanted& wanted, const Outcome::Item& item);
  Status halt(const std::shared_ptr<store::Run>& run, const Resolution& damage, Outcome& outcome);
  store::Addressed event_in(const std::shared_ptr<store::Run>& run, std::string_view type, std::string body);

  Resolver& resolver_;
  store::Reader& reader_;
  const store::Tail& tail_;
  store::RunDirectory& runs_;
  Clock& clock_;
  std::set<std::string> needed_;  // the wanted pointers on which something depends
};

}  // namespace muniment::evidence
