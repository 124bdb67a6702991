// Finds every copy of an event, an artifact or a run in the database, and erases all of them in one transaction
// (migrations/0006_erasure.sql).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "store/read/reader.hpp"

namespace muniment::store {

// An erased artifact keeps its row, without metadata and with a hash of zeros, because the true hash has no salt and
// would allow guessing short content.
inline bool is_erased(const ArtifactRow& row) { return row.hash == Hash{}; }

// The object to erase: exactly one member is set.
struct ErasureTarget {
  std::optional<std::int64_t> seq;
  std::optional<Uuid> artifact_id;
  std::optional<std::string> run_id;
};

struct ErasedArtifact {
  Uuid artifact_id;
  std::string path;
  std::int64_t size_bytes = 0;
};

// The event in a closed log from which a document was carried over.
struct CarriedFrom {
  std::int16_t log_no = 0;
  std::int64_t seq = -1;
};
// Parses the body of document.revised; nullopt: the document was not carried over.
std::optional<CarriedFrom> carried_from(std::string_view body);

// An answer to a question that cites a passage of an erased document. It has text of the passage, and is not erased.
struct CitingAnswer {
  std::int64_t seq = -1;  // its question.answered
  std::string run_id;
};

// All copies in one run: its events, its artifacts, and the revisions of documents that these hold.
struct ErasurePlan {
  std::int64_t run_no = -1;
  std::string run_id;
  std::vector<std::int64_t> seqs;         // events that lose their bodies, in order
  std::vector<ErasedArtifact> artifacts;  // files, with the metadata and hashes of their rows
  std::int64_t manifests = 0;             // rows that are cleared with their events
  std::int64_t claims = 0;
  std::int64_t evidence = 0;
  std::int64_t documents = 0;          // revisions that are cleared, with their passages
  std::int64_t pointers = 0;           // rows of the catalogue to delete
  std::int64_t snapshots = 0;          // states from the first erased event on
  std::vector<std::string> needed;     // pointers to these artifacts on which something depends
  std::vector<CarriedFrom> carried;    // origins of the revisions in closed logs, which keep their copies
  std::vector<CitingAnswer> answers;   // of the whole erasure, in order; not of an erasure that is planned again
  std::vector<ErasurePlan> elsewhere;  // at most one: corpora's copies of the run's artifacts, in the run _log
};

// Plans an erasure. Errors: not_found; conflict if the target is erased already; invalid_argument for an event without
// user text that the proofs need.
Result<ErasurePlan> plan_erasure(Reader& reader, std::int16_t log_no, const ErasureTarget& target);

// Plans an unfinished erasure again, including copies made since.
Result<ErasurePlan> plan_erasure_again(Reader& reader, std::int16_t log_no, const ErasurePlan& before);

// Returns the reason why the run must be kept, according to its newest run.annotated: "run r1 is under a legal hold
// since … (seq 9, set by uid:0)", or "… is to be kept until …"; nullopt: it need not be kept.
Result<std::optional<std::string>> reason_to_keep(Reader& reader, std::int16_t log_no, std::int64_t run_no,
                                                  std::string_view run_id, Time now);

// Recomputes the statistics of Postgres' planner from the remaining rows. Call it as the owner of the tables.
Status analyse_tables(Connection& owner);

// Vacuums all tables, but only those partitions of `event` that contain these events. Call it as the owner. Errors:
// unavailable, naming the tables that Postgres refused or that exceeded `limit`; autovacuum processes these later.
Status vacuum_tables(Connection& owner, std::int16_t log_no, const std::vector<std::int64_t>& seqs,
                     std::chrono::seconds limit);

// Erases the copies in one transaction, as the redactor. Repeating it changes nothing. `run_row` is derived from the
// run's other events.
Status erase_copies(Connection& redactor, std::int16_t log_no, std::int64_t run_no,
                    const std::vector<std::int64_t>& seqs, const std::vector<Uuid>& artifact_ids,
                    const std::optional<RunRow>& run_row);

// Returns the run's row without these events' bodies; nullopt: none of them affects it.
Result<std::optional<RunRow>> run_row_without(Reader& reader, std::int64_t run_no,
                                              const std::vector<std::int64_t>& seqs);

}  // namespace muniment::store
