// The state of a run: a pure fold of its events, one document (schema/state.json). Snapshots hold
// it, rehydrate answers it, and the verifier folds it again with code of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

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

  // Applies the next event of the run. Never fails: what does not fit is counted, not guessed, so
  // that a fold is total over every log that could be written. `patch` is the text of a
  // state.patched event whose patch was spilled into an artifact (empty otherwise).
  void apply(const Event& event, std::string_view spilled_patch = {});

  // Would this state.patched body apply? For admission: a patch that does not apply, or takes
  // `working` over 4 MiB, is refused before it is written. Errors: invalid_argument, too_large,
  // conflict (expected_state_hash is not the present one).
  Status check_patch(std::string_view body, std::string_view spilled_patch = {}) const;

  std::int64_t seq() const;  // of the last event applied; -1 before the first
  std::int64_t run_seq() const;
  std::size_t working_bytes() const;  // of the canonical text of `working`: most of a state's size

  // The canonical document (docs/format.md, State): the bytes that are hashed.
  std::string document() const;
  Hash state_hash() const;  // sha256(document())
  static Result<State> parse(std::string_view document);

 private:
  struct Fold;
  std::unique_ptr<Fold> fold_;
};

// The artifact_id of a spilled patch that `event` needs before it can be applied; empty if none.
std::string spilled_patch_of(const Event& event);

}  // namespace muniment::events
