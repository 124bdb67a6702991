// The stop rule: a critical pointer that does not resolve is tried once more after a short pause;
// if it still does not, its run stops with SYSTEM_ERROR, in one commit with what was found. Nothing
// else halts a run.
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

// A pointer to be resolved, and the run that stops if it must.
struct Wanted {
  std::string pointer;
  std::shared_ptr<store::Run> run;  // where what is found is logged; nullptr: nowhere
  bool critical = false;            // flagged; the catalogue may make it critical all the same
  // `run` belongs to whoever asks, and stops. Otherwise what is found is only noted there; _log never stops.
  bool may_halt = true;
  Depth depth = Depth::span;  // of a look at what nothing depends on
  std::string whose{};        // the run that the pointer is used for, where it is noted in _log
};

struct Outcome {
  struct Item {
    Resolution resolution;
    bool critical = false;
  };
  std::vector<Item> items;               // in the order of what was wanted
  std::vector<store::Addressed> events;  // to be appended as one request; empty: nothing happened
  std::vector<PendingHalt> halts;        // for the journal, should the append not be taken
  // The first critical pointer that did not resolve; nullptr: all did.
  const Item* damage() const;
};

class StopRule {
 public:
  StopRule(Resolver& resolver, store::Reader& reader, const store::Tail& tail, store::RunDirectory& runs, Clock& clock)
      : resolver_(resolver), reader_(reader), tail_(tail), runs_(runs), clock_(clock) {}

  // Blocks for the pause if anything critical has to be tried again: once, however many there are.
  // Errors: unavailable; invalid_argument for a critical pointer without a run, where it is flagged so or
  // does not resolve.
  Result<Outcome> resolve(const std::vector<Wanted>& wanted, bool with_text);

 private:
  bool is_critical(const Wanted& wanted, const Pointer& pointer) const;
  Status look_up_needed(const std::vector<Wanted>& wanted);
  Status log_failures(const std::vector<Wanted>& wanted, const std::vector<bool>& retried, Outcome& outcome);
  static Status check_run_named(const Wanted& wanted, const Outcome::Item& item);
  Status halt(const std::shared_ptr<store::Run>& run, const Resolution& damage, Outcome& outcome);
  store::Addressed event_in(const std::shared_ptr<store::Run>& run, std::string_view type, std::string body);

  Resolver& resolver_;
  store::Reader& reader_;
  const store::Tail& tail_;
  store::RunDirectory& runs_;
  Clock& clock_;
  std::set<std::string> needed_;  // of what is wanted
};

}  // namespace muniment::evidence
