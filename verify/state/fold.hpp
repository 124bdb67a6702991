// Folds the state of a run from its events (docs/format.md, State) without the writer's code, so that an error in the
// writer's fold shows as a difference.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/json/json.hpp"
#include "verify/log/run_facts.hpp"
#include "verify/state/cost.hpp"
#include "verify/state/patch.hpp"

namespace muniment::verify {

struct FoldEvent : RunEvent {
  std::optional<std::string> step_id;
  std::string run_hash;             // hexadecimal
  std::optional<std::string> body;  // nullopt: redacted, or of a type whose rule does not read it
  bool erased = false;              // the event is redacted
  bool unread = false;              // its body is in the archive and could not be read
};

// Returns the artifact_id of the patch that `apply` needs with this event; empty if none.
std::string spilled_patch_of(const FoldEvent& event);

class Fold {
 public:
  explicit Fold(std::string run_id) : run_id_(std::move(run_id)) {}

  // Applies an event. `spilled` is the content of the artifact that spilled_patch_of names; nullopt if it is erased.
  void apply(const FoldEvent& event, const std::optional<std::string>& spilled);

  std::string document() const;  // canonical

  // Returns the types whose rules read the body. The other types are folded without it.
  static std::vector<std::string_view> types_with_bodies();

 private:
  struct Item {  // an element of a bounded list: its key and its canonical text
    std::string key;
    std::string before;  // text up to "halted", or the whole text
    std::string after;   // its text after the value of "halted"; empty if it has no such member
    bool halted = false;
  };
  using Items = std::deque<Item>;
  struct Rules;
  friend struct Rules;

  void open(Items& items, std::int64_t& dropped, const Text& key, std::string before, std::string after = "");
  static void close(Items& items, const Text& key);
  static std::string text_of_items(const Items& items);
  std::string run_text() const;
  std::string context_text() const;
  std::string usage_text() const;

  std::string run_id_;
  std::int64_t seq_ = -1, run_seq_ = -1;
  std::string run_hash_ = std::string(64, '0');
  RunFacts facts_;
  Text last_event_at_;
  Items steps_, calls_, approvals_, children_, claims_, tasks_;
  std::int64_t steps_done_ = 0, steps_dropped_ = 0, pending_dropped_ = 0;
  std::int64_t claims_count_ = 0, claims_dropped_ = 0;
  std::int64_t tasks_opened_ = 0, tasks_completed_ = 0, tasks_dropped_ = 0;
  Text manifest_id_;
  std::int64_t messages_ = 0;
  std::optional<std::int64_t> first_message_, last_message_, compacted_at_;
  std::string plan_ = "[]";
  std::int64_t budgets_exceeded_ = 0;
  std::string last_budget_ = "null";
  std::int64_t input_tokens_ = 0, output_tokens_ = 0, uncounted_ = 0;
  Costs costs_;
  std::map<std::string, std::int64_t, std::less<>> counts_;
  std::int64_t artifacts_ = 0, artifact_bytes_ = 0;
  Working working_;
  std::int64_t working_refused_ = 0;
};

}  // namespace muniment::verify
