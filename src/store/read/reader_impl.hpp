// Declares what the files of the Reader share: its connection, the cached ids of runs, and the conversion of a row to
// an event. Its functions throw; reader*.cpp convert exceptions to errors with `guarded`.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/read/document_lives.hpp"
#include "store/read/pq.hpp"
#include "store/read/reader.hpp"

namespace muniment::store {

struct Reader::Impl {
  Impl(const LogPlace& where, DatabaseRole role)
      : Impl(where, std::make_shared<Connection>(where.uri, role, where.connections)) {}
  Impl(const LogPlace& where, std::shared_ptr<Connection> by)
      : place(where), shared(std::move(by)), connection(*shared), log_no(place.log_no), archive(place.archive) {}

  // Returns whether the table may hold rows past the log's end, which do not belong to the log.
  bool closed() const { return place.size != INT64_MAX; }

  // Returns parameters that begin with the log's number, as every statement requires.
  Params params() const { return std::move(Params().integer(log_no)); }

  // Adds archived bodies to the events.
  void fill(std::vector<events::Event>& events);

  // Adds the ids of their runs to the events, from run.started events.
  void name_runs(std::vector<events::Event>& events);

  // Returns the events that determine a run's row (run_row.hpp), in order.
  std::vector<events::Event> life_of(std::int64_t run_no);
  std::optional<std::int64_t> run_no_of(std::string_view run_id);

  const LogPlace place;
  const std::shared_ptr<Connection> shared;
  Connection& connection;
  const std::int16_t log_no;
  const std::string archive;  // folder of the bodies that are not in the database
  std::unordered_map<std::int64_t, std::string> run_ids;
  std::unordered_map<std::int64_t, std::string> owners;  // of corpora, by their first revisions, as the log has them
  KnownRevocations revocations;
  std::map<std::int16_t, std::unique_ptr<Reader>> others;  // readers of other logs
};

// The columns that `event_of` reads, in its order.
#define MUNIMENT_EVENT_COLUMNS_WITH(body)                                       \
  "seq, run_no, run_seq, " MUNIMENT_MICROS("recorded_at") ", " MUNIMENT_MICROS( \
      "occurred_at") ", origin, type, schema_version, step_id, actor, event_id, body_hash, salt, " body ", run_hash"
#define MUNIMENT_EVENT_COLUMNS MUNIMENT_EVENT_COLUMNS_WITH("body")

// Converts a row to an event without run_id, and without the body if it is archived.
events::Event event_of(const pqxx::row& row);

// Returns existing artifacts, unordered, with the roots of their pieces.
std::vector<ArtifactRow> artifacts_by_id(Reader::Impl& impl, const std::vector<Uuid>& artifact_ids);

// Puts into rows what their events recorded, and the reason into those of which no event tells what they claim. Does
// nothing without the log's tree.
Status hold_documents(Reader& reader, Reader::Impl& impl, const std::vector<DocumentRow*>& rows);
// Returns the lives of the documents once they include the events before `seq`; nullptr without the log's tree.
Result<const DocumentLives*> lives_up_to(const Reader::Impl& impl, std::int64_t seq);
// Likewise for passages, with the texts of events.
Status hold_chunks(Reader& reader, Reader::Impl& impl, std::vector<ChunkInDocument>& rows);

// Hold rows against the events in whose transactions they were written. Errors: corrupt, naming the first that differs.
Status hold_artifacts(Reader& reader, Reader::Impl& impl, const std::vector<ArtifactRow>& rows);
Status hold_manifests(Reader& reader, Reader::Impl& impl, const std::vector<ManifestRow>& rows);
Status hold_claims(Reader& reader, Reader::Impl& impl, const std::vector<ClaimRow>& rows);
Status hold_evidence(Reader& reader, Reader::Impl& impl, const std::vector<EvidenceRow>& rows);
Status hold_snapshots(Reader& reader, Reader::Impl& impl, const std::vector<SnapshotRow>& rows);

// Returns what was read once `hold` confirms it.
template <typename Row>
Result<std::vector<Row>> held_rows(Reader& reader, Reader::Impl& impl, Result<std::vector<Row>> read,
                                   Status (*hold)(Reader&, Reader::Impl&, const std::vector<Row>&)) {
  if (read) RETURN_IF_ERROR(hold(reader, impl, *read));
  return read;
}
template <typename Row>
Result<std::optional<Row>> held_rows(Reader& reader, Reader::Impl& impl, Result<std::optional<Row>> read,
                                     Status (*hold)(Reader&, Reader::Impl&, const std::vector<Row>&)) {
  if (read && *read) RETURN_IF_ERROR(hold(reader, impl, {**read}));
  return read;
}

template <typename Row>
std::vector<Row> rows_of(const pqxx::result& rows, Row (*row_of)(const pqxx::row&)) {
  std::vector<Row> out;
  for (const pqxx::row& row : rows) out.push_back(row_of(row));
  return out;
}

// Rows of one run, by a position column. `sql` holds the columns, the table, and the run as $2.
#define MUNIMENT_IN_SPAN(position) " AND " position " >= $3 AND " position " < $4 ORDER BY " position " LIMIT $5"

template <typename Row>
Result<std::vector<Row>> rows_in(Reader::Impl& impl, std::string_view name, std::string_view sql, Params of_run,
                                 SeqSpan span, std::size_t limit, Row (*row_of)(const pqxx::row&)) {
  return guarded(impl.connection, "reading " + std::string(name), [&] {
    return rows_of(query(impl.connection, name, sql,
                         of_run.integer(span.from).integer(span.to).integer(static_cast<std::int64_t>(limit))),
                   row_of);
  });
}

// Types that change a run's head, and types that change its row. The index "life" covers them.
#define MUNIMENT_HEAD_TYPES "'run.started', 'run.ended', 'run.halted', 'run.resumed'"
#define MUNIMENT_LIFE_TYPES MUNIMENT_HEAD_TYPES ", 'run.annotated'"

}  // namespace muniment::store
