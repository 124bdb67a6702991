// The rows of the tables beside `event`, as plain structs. They travel with the events they belong
// to (appender.hpp, Attachment) and come back from the readers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "base/crypto/sha256.hpp"
#include "base/ids.hpp"
#include "events/event.hpp"

namespace muniment::store {

// `seq` is the event that the row belongs to; the appender fills it in, and created_at too.
struct ArtifactRow {
  Uuid artifact_id;
  std::string run_id;
  std::string step_id;  // "main" where the client named none
  std::string path;     // relative to the artifact root
  Hash hash{};
  std::string mime_type;
  std::int64_t size_bytes = 0;
  Time created_at;
  std::string metadata = "{}";
  std::int64_t seq = -1;
  std::optional<Hash> pieces_root{};  // of a large one; in its event, no column of the table
};

struct ManifestRow {
  Uuid manifest_id;
  std::string run_id;
  std::optional<Uuid> base_id;
  std::optional<Salt> salt;  // nullopt: erased, as is the text
  Hash hash{};
  std::int64_t size_bytes = 0;
  std::optional<std::string> manifest;
  Time created_at;
  std::int64_t seq = -1;
};

struct SnapshotRow {
  std::int64_t run_no = 0;
  std::int64_t seq = -1;  // the last event that the state includes
  std::int64_t run_seq = -1;
  std::int64_t event_seq = -1;  // its snapshot.taken event
  std::optional<Salt> salt;
  Hash hash{};
  Hash state_hash{};
  std::int64_t size_bytes = 0;
  std::optional<std::string> state;  // nullopt: in the artifact, or erased
  std::optional<Uuid> artifact_id;
  std::string reason;
  Time created_at;
};

struct ClaimRow {
  Uuid claim_id;
  std::string run_id;
  std::optional<std::string> step_id;
  std::string text;
  std::string pointers;  // a JSON array of strings
  std::string status = "open";
  Time created_at;
  std::int64_t seq = -1;
};

struct EvidenceRow {
  Uuid evidence_id;
  std::string run_id;
  std::string type;
  std::optional<std::string> content;  // JSON; or
  std::optional<std::string> pointer;
  Hash hash{};
  std::optional<std::string> validator_id;
  std::string actor;
  // Of a pointer: what its evidence_id is made of (evidence/evidence_id.hpp).
  std::optional<std::string> corpus_id;
  std::optional<std::string> index_id;
  std::optional<std::string> chunk_id;
  std::optional<std::string> span;     // b120-480
  std::optional<std::string> task_id;  // of its run
  std::optional<Uuid> command_id;      // the recorded command of which the daemon made the content
  Time created_at;
  std::int64_t seq = -1;
};

struct EvidenceLinkRow {
  Uuid claim_id;
  std::string run_id;
  Uuid evidence_id;
  std::string relation;  // supports, refutes
  std::int64_t seq = -1;
};

// Changes a claim's row: the view claim_decision passes it on.
struct ClaimDecisionRow {
  Uuid claim_id;
  std::string status;
  std::int64_t seq = -1;
};

// With a task.opened or task.completed event. A second one of the same task is given back as maybe_duplicate.
struct TaskChangeRow {
  std::string run_id;
  std::string task_id;
  std::string change;  // opened, completed
  std::int64_t seq = -1;
};

// With a task.completed event, one for each of its body's evidence_seqs: the evidence that is in this log. Evidence
// that completed a task already is given back as maybe_duplicate.
struct TaskEvidenceRow {
  std::string run_id;  // of the task
  std::string task_id;
  Uuid evidence_id;
  std::int64_t evidence_seq = -1;  // its evidence.recorded event, which may be of another run
  std::int64_t seq = -1;
};

using Row = std::variant<ArtifactRow, ManifestRow, SnapshotRow, ClaimRow, EvidenceRow, EvidenceLinkRow,
                         ClaimDecisionRow, TaskChangeRow, TaskEvidenceRow>;

struct RunRow {
  std::int64_t run_no = 0;
  std::string run_id;
  std::int64_t first_seq = -1;
  std::string status;  // open, ended, halted
  std::optional<std::string> outcome;
  events::Origin origin = events::Origin::reported;
  std::string owner;  // the actor of run.started
  std::string agent;  // its name
  std::optional<std::string> goal;
  std::string labels = "{}";
  std::optional<std::string> parent;  // a run_id
  std::optional<std::string> external_id;
  Time started_at;
  std::optional<Time> ended_at;
  std::optional<std::string> halt;  // JSON {code, reason, pointer, expected, actual, attempts, seq, recorded_at}
  // As the client or the source says; only in lists, where the follower "report" has seen such an event.
  std::optional<Time> first_occurred_at, last_occurred_at;

  bool operator==(const RunRow&) const = default;
};

struct PointerRow {  // something depends on this pointer
  std::string pointer;
  std::string needed_by;  // claim, evidence, manifest
  Uuid needed_id;
  std::string run_id;
  std::int64_t seq = -1;
};

}  // namespace muniment::store
