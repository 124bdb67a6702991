#include "verify/state/run_folder.hpp"

#include <fmt/format.h>

namespace muniment::verify {

Status RunFolder::advance() {
  ASSIGN_OR_RETURN(next_, snapshots_.next());
  return success();
}

// Reports a snapshot whose seq no event of the run has.
Status RunFolder::pass_over() {
  found(Check::snapshot, fmt::format("an event of this run with seq {}", next_->seq), "none");
  return advance();
}

Status RunFolder::finish() {
  while (next_) RETURN_IF_ERROR(pass_over());
  return success();
}

Status RunFolder::take(std::int64_t run_no, const FoldEvent& event) {
  if (run_no != run_no_ || !fold_) {
    run_no_ = run_no;
    fold_.emplace(log_.run_id(run_no));
    foldable_ = true;
    erased_ = false;
  }
  erased_ = erased_ || event.erased;
  foldable_ = foldable_ && !event.unread;
  while (next_ && (next_->run_no < run_no || (next_->run_no == run_no && next_->seq < event.seq)))
    RETURN_IF_ERROR(pass_over());
  if (foldable_) RETURN_IF_ERROR(apply(event));
  while (next_ && next_->run_no == run_no && next_->seq == event.seq) {
    if (next_->run_seq != event.run_seq) {
      found(Check::snapshot, fmt::format("run_seq = {}", event.run_seq), fmt::format("run_seq = {}", next_->run_seq));
    }
    compare();
    RETURN_IF_ERROR(advance());
  }
  return success();
}

Status RunFolder::apply(const FoldEvent& event) {
  const std::string artifact_id = spilled_patch_of(event);
  std::optional<std::string> spilled;
  erased_ = erased_ || redacted_.contains(artifact_id);
  if (!artifact_id.empty() && !redacted_.contains(artifact_id)) {
    ASSIGN_OR_RETURN(spilled, patches_.bytes(artifact_id));
    foldable_ = spilled.has_value();
  }
  if (foldable_) fold_->apply(event, spilled);
  return success();
}

void RunFolder::compare() {
  // An erasure removes all states of the run from its first erased event on, and a state whose own file it names. The
  // row of a state in a file still names its artifact.
  if (!next_->state && next_->salt && !next_->artifact_hash) {
    found(Check::snapshot_hash, "a state, or neither it nor its salt", "a salt without a state");
    return;
  }
  if (!next_->state && !next_->salt) {
    ++counts_.erased;
    if (next_->state_hash != std::string(sizeof(Hash), '\0'))
      found(Check::snapshot_hash, "state_hash = zeros, of an erased state",
            "state_hash = " + to_hex(next_->state_hash));
    if (!erased_ && !redacted_.contains(next_->artifact_id)) {
      found(Check::snapshot_hash, "a state, or an event before it or a file of its own that is redacted",
            "an erased state");
    }
    return;
  }
  if (next_->state) {
    check_inline_hashes();
  } else if (*next_->artifact_hash != to_hex(next_->state_hash)) {
    found(Check::snapshot_hash, "state_hash = " + *next_->artifact_hash, "state_hash = " + to_hex(next_->state_hash));
  }
  if (!foldable_) {
    ++counts_.not_folded;
    return;
  }
  ++counts_.folded;
  const std::string document = fold_->document();
  const std::string folded = to_hex(sha256(document));
  // The check of the artifacts covers the file behind artifact_hash: equal hashes mean equal states.
  const std::string held = next_->state ? to_hex(sha256(*next_->state)) : *next_->artifact_hash;
  if (folded != held) {
    found(Check::snapshot_fold, "state_hash = " + folded, "state_hash = " + held);
  } else if (!next_->state && next_->salt && view(sha256({*next_->salt, document})) != next_->hash) {
    found(Check::snapshot_hash, "hash = " + to_hex(sha256({*next_->salt, document})), "hash = " + to_hex(next_->hash));
  }
}

void RunFolder::check_inline_hashes() {
  const std::string hash = to_hex(sha256({next_->salt.value_or(""), *next_->state}));
  const std::string state_hash = to_hex(sha256(*next_->state));
  if (hash != to_hex(next_->hash))
    found(Check::snapshot_hash, "hash = " + to_hex(next_->hash), "sha256(salt, state) = " + hash);
  if (state_hash != to_hex(next_->state_hash)) {
    found(Check::snapshot_hash, "state_hash = " + to_hex(next_->state_hash), "sha256(state) = " + state_hash);
  }
  if (next_->size_bytes != static_cast<std::int64_t>(next_->state->size())) {
    found(Check::snapshot_hash, fmt::format("size_bytes = {}", next_->size_bytes),
          fmt::format("{} bytes", next_->state->size()));
  }
}

void RunFolder::found(Check check, std::string expected, std::string actual) {
  findings_.add({check, next_->event_seq, log_.run_id(next_->run_no), std::move(expected), std::move(actual)});
}

}  // namespace muniment::verify
