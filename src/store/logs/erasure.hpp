// What the database knows of an erasure: everything that holds a copy of an event, an artifact or a
// run, and the one transaction that takes all of it away (migrations/0006_erasure.sql).
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

// An erased artifact keeps its row, without metadata and with a hash of zeros: the true one has no
// salt, and would let short bytes be guessed.
inline bool is_erased(const ArtifactRow& row) { return row.hash == Hash{}; }

// What is asked to be erased: exactly one of them.
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

// A document that was brought along from a closed log: its event there.
struct CarriedFrom {
  std::int16_t log_no = 0;
  std::int64_t seq = -1;
};
// As the body of its document.revised says; nullopt: it was not brought along.
std::optional<CarriedFrom> carried_from(std::string_view body);

// All copies in one run: of it, its artifacts, and the revisions of documents whose bytes or text those hold.
struct ErasurePlan {
  std::int64_t run_no = -1;
  std::string run_id;
  std::vector<std::int64_t> seqs;         // events that lose their bodies, in order
  std::vector<ErasedArtifact> artifacts;  // files, with their rows' metadata and hashes
  std::int64_t manifests = 0;             // rows that lose what they say with their events
  std::int64_t claims = 0;
  std::int64_t evidence = 0;
  std::int64_t documents = 0;          // revisions that lose what they say, and their passages
  std::int64_t pointers = 0;           // rows of the catalogue that go
  std::int64_t snapshots = 0;          // states from the first erased event on
  std::vector<std::string> needed;     // pointers to these artifacts that something depends on
  std::vector<CarriedFrom> carried;    // of the revisions: what closed logs have of them, and keep
  std::vector<ErasurePlan> elsewhere;  // at most one: what corpora made of the artifacts of a run, in the run _log
};

// Errors: not_found; conflict when it is erased already; invalid_argument for an event that says
// nothing of its own and that the proofs need.
Result<ErasurePlan> plan_erasure(Reader& reader, std::int16_t log_no, const ErasureTarget& target);

// What was planned before and is not carried out, or not all of it, together with what has come to hold a copy since.
Result<ErasurePlan> plan_erasure_again(Reader& reader, std::int16_t log_no, const ErasurePlan& before);

// Why the run must be kept: "run r1 is under a legal hold since … (seq 9, set by uid:0)", or "… is to be
// kept until …", by the newest run.annotated that says so. nullopt: it need not.
Result<std::optional<std::string>> reason_to_keep(Reader& reader, std::int16_t log_no, std::int64_t run_no,
                                                  std::string_view run_id, Time now);

// As who owns the tables: what Postgres keeps of them for its planner is made anew, from what is there now.
Status analyse_tables(Connection& owner);

// The same for the pages: the partitions that these events are in, and all other tables. Errors: unavailable, naming
// those for which `limit` was too short, or that Postgres refused: what is left is autovacuum's.
Status vacuum_tables(Connection& owner, std::int16_t log_no, const std::vector<std::int64_t>& seqs,
                     std::chrono::seconds limit);

// As the redactor: one transaction, and the same again changes nothing. `run_row` is what the run's
// other events make of its row.
Status erase_copies(Connection& redactor, std::int16_t log_no, std::int64_t run_no,
                    const std::vector<std::int64_t>& seqs, const std::vector<Uuid>& artifact_ids,
                    const std::optional<RunRow>& run_row);

// What the run's row says once these events are blank; nullopt: none of them makes it.
Result<std::optional<RunRow>> run_row_without(Reader& reader, std::int64_t run_no,
                                              const std::vector<std::int64_t>& seqs);

}  // namespace muniment::store
