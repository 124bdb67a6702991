// Defines the rows of the tables beside `event` as plain structs. Requests carry them with their events (appender.hpp,
// Attachment), and readers return them.
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

// `seq` is the event of the row. The appender sets it, and created_at.
struct ArtifactRow {
  Uuid artifact_id;
  std::string run_id;
  std::string step_id;  // "main" if the client named none
  std::string path;     // path relative to the artifact root
  Hash hash{};
  std::string mime_type;
  std::int64_t size_bytes = 0;
  Time created_at;
  std::string metadata = "{}";
  std::int64_t seq = -1;
  std::optional<Hash> pieces_root{};  // for a large file; stored in its event, not in the table
};

struct ManifestRow {
  Uuid manifest_id;
  std::string run_id;
  std::optional<Uuid> base_id;
  std::optional<Salt> salt;  // nullopt: erased, like the text
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
  std::optional<std::string> state;  // nullopt: stored in the artifact, or erased
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
  std::optional<std::string> content;  // JSON; absent if `pointer` is set
  std::optional<std::string> pointer;
  Hash hash{};
  std::optional<std::string> validator_id;
  std::string actor;
  // Parts of the evidence_id of a pointer (evidence/evidence_id.hpp).
  std::optional<std::string> corpus_id;
  std::optional<std::string> index_id;
  std::optional<std::string> chunk_id;
  std::optional<std::string> span;     // b120-480
  std::optional<std::string> task_id;  // a task of its run
  std::optional<Uuid> command_id;      // recorded command from which the daemon derived the content
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

// Changes a claim's row through the view claim_decision.
struct ClaimDecisionRow {
  Uuid claim_id;
  std::string status;
  std::int64_t seq = -1;
};

// Accompanies a task.opened or task.completed event. A second row of the same task is returned for retry as
// maybe_duplicate.
struct TaskChangeRow {
  std::string run_id;
  std::string task_id;
  std::string change;  // opened, completed
  std::int64_t seq = -1;
};

// Accompanies a task.completed event, one row for each evidence_seq of its body: the evidence in this log. Evidence
// that completed a task before is returned for retry as maybe_duplicate.
struct TaskEvidenceRow {
  std::string run_id;  // run of the task
  std::string task_id;
  Uuid evidence_id;
  std::int64_t evidence_seq = -1;  // its evidence.recorded event, possibly of another run
  std::int64_t seq = -1;
};

using Row = std::variant<ArtifactRow, ManifestRow, SnapshotRow, ClaimRow, EvidenceRow, EvidenceLinkRow,
                         ClaimDecisionRow, TaskChangeRow, TaskEvidenceRow>;

// The cost of a run: recorded costs, and estimates of those that were not recorded.
struct RunCost {
  std::optional<std::string> amount;      // decimal text; nullopt: in several currencies
  std::string currency;                   // mixed: several
  std::optional<std::string> estimated;   // the part that is estimated, in USD
  std::optional<std::string> price_list;  // version of the prices of the estimate

  bool operator==(const RunCost&) const = default;
};

struct RunRow {
  std::int64_t run_no = 0;
  std::string run_id;
  std::int64_t first_seq = -1;
  std::string status;  // open, ended, halted
  std::optional<std::string> outcome;
  events::Origin origin = events::Origin::reported;
  std::string owner;  // actor of run.started
  std::string agent;  // name of the agent
  std::optional<std::string> goal;
  std::string labels = "{}";
  std::optional<std::string> parent;  // run_id of the parent
  std::optional<std::string> external_id;
  Time started_at;
  std::optional<Time> ended_at;
  std::optional<std::string> halt;  // JSON {code, reason, pointer, expected, actual, attempts, seq, recorded_at}
  // Times that the client or the source gave. Set only in lists, and only if the follower "report" has processed such
  // an event.
  std::optional<Time> first_occurred_at, last_occurred_at;
  std::optional<RunCost> cost;  // like the times; nullopt: unknown

  bool operator==(const RunRow&) const = default;
};

struct PointerRow {  // a pointer on which something depends
  std::string pointer;
  std::string needed_by;  // claim, evidence, manifest
  Uuid needed_id;
  std::string run_id;
  std::int64_t seq = -1;
};

}  // namespace muniment::store
