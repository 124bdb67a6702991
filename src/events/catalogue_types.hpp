// One enumerator per core event type, named like the type, so that the compiler checks that a switch covers all of them
// (-Werror=switch-enum), and `foreign` for any other type.
#pragma once

#include <cstddef>
#include <cstdint>

namespace muniment::events {

enum class Type : std::uint8_t {
  access_refused,
  approval_decided,
  approval_requested,
  artifact_read,
  artifact_redacted,
  artifact_stored,
  budget_exceeded,
  child_ended,
  child_halted,
  child_started,
  claim_decided,
  claim_recorded,
  clock_stepped,
  command_ended,
  command_started,
  context_built,
  context_compacted,
  document_retracted,
  document_revised,
  embedder_trained,
  error_raised,
  event_redacted,
  evidence_linked,
  evidence_recorded,
  feedback_recorded,
  file_changed,
  file_read,
  key_rotated,
  log_archived,
  log_exported,
  log_restored,
  log_resumed,
  log_started,
  log_stopped,
  log_verified,
  manifest_recorded,
  message_added,
  model_answered,
  model_called,
  plan_updated,
  pointer_rendered,
  pointer_resolved,
  pointer_retried,
  pointer_unresolved,
  pointer_validated,
  question_answered,
  retrieval_answered,
  run_annotated,
  run_ended,
  run_halted,
  run_interrupted,
  run_resumed,
  run_started,
  sandbox_refused,
  snapshot_taken,
  source_revoked,
  state_patched,
  step_ended,
  step_started,
  task_completed,
  task_opened,
  task_validated,
  thought_recorded,
  tool_called,
  tool_returned,
  violation_detected,
  foreign,  // x.<vendor>.<name>, and names that this version does not know
};

inline constexpr std::size_t type_count = static_cast<std::size_t>(Type::foreign) + 1;

}  // namespace muniment::events
