// The state of a run: a pure fold of its events into one document (schema/state.json). Snapshots store it, rehydrate
// returns it, and the verifier folds it again with separate code.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/json/json_tree.hpp"
#include "base/result.hpp"
#include "events/event.hpp"

namespace muniment::events {

class State {
 public:
  State();
  ~State();
  State(State&&) noexcept;
  State& operator=(State&&) noexcept;
  State(const State&);
  State& operator=(const State&);

  // Applies the next event of the run. Never fails: an event that does not fit is counted and otherwise ignored, so
  // that every possible log can be folded. `patch` is the text of a state.patched event whose patch was spilled into an
  // artifact (empty otherwise).
  void apply(const Event& event, std::string_view spilled_patch = {});

  // Checks that this state.patched body would apply. On admission, a patch that does not apply, or would take `working`
  // over 4 MiB, is refused before it is written. Errors: invalid_argument, too_large, conflict (expected_state_hash
  // differs from the current hash).
  Status check_patch(std::string_view body, std::string_view spilled_patch = {}) const;

  std::int64_t seq() const;  // seq of the last applied event; -1 before the first
  std::int64_t run_seq() const;
  const json::Tree& working() const;  // the part that state.patched changes, most of a state's size

  // The canonical document (docs/format.md, State): the bytes that are hashed.
  std::string document() const;
  Hash state_hash() const;  // sha256(document())
  static Result<State> parse(std::string_view document);

 private:
  struct Fold;
  std::unique_ptr<Fold> fold_;
};

// Returns the artifact_id of a spilled patch that `event` needs before it can be applied; empty if none.
std::string spilled_patch_of(const Event& event);

}  // namespace muniment::events
