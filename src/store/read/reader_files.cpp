// Implements reads of a run's artifacts, manifests and snapshots.
#include <algorithm>

#include "base/json/json.hpp"
#include "base/json/jsonb.hpp"
#include "store/files/pieces.hpp"
#include "store/read/reader_impl.hpp"

namespace muniment::store {

namespace {

#define MUNIMENT_ARTIFACT_COLUMNS \
  "artifact_id, run_id, step_id, path, hash, mime_type, size_bytes, " MUNIMENT_MICROS("created_at") ", metadata, seq"

ArtifactRow artifact_of(const pqxx::row& row) {
  ArtifactRow artifact;
  artifact.artifact_id = uuid_of(row[0]);
  artifact.run_id = text_of(row[1]);
  artifact.step_id = text_of(row[2]);
  artifact.path = text_of(row[3]);
  artifact.hash = hex_hash_of(row[4]);
  artifact.mime_type = text_of(row[5]);
  artifact.size_bytes = integer_of(row[6]);
  artifact.created_at = time_of(row[7]);
  artifact.metadata = json::from_jsonb(text_of(row[8]));
  artifact.seq = integer_of(row[9]);
  return artifact;
}

ManifestRow manifest_of(const pqxx::row& row) {
  ManifestRow manifest;
  manifest.manifest_id = uuid_of(row[0]);
  manifest.run_id = text_of(row[1]);
  manifest.base_id = uuid_if(row[2]);
  manifest.salt = hash_if(row[3]);
  manifest.hash = hash_of(row[4]);
  manifest.size_bytes = integer_of(row[5]);
  manifest.manifest = text_if(row[6]);
  manifest.created_at = time_of(row[7]);
  manifest.seq = integer_of(row[8]);
  return manifest;
}

SnapshotRow snapshot_of(const pqxx::row& row) {
  SnapshotRow snapshot;
  snapshot.run_no = integer_of(row[0]);
  snapshot.seq = integer_of(row[1]);
  snapshot.run_seq = integer_of(row[2]);
  snapshot.event_seq = integer_of(row[3]);
  snapshot.salt = hash_if(row[4]);
  snapshot.hash = hash_of(row[5]);
  snapshot.state_hash = hash_of(row[6]);
  snapshot.size_bytes = integer_of(row[7]);
  snapshot.state = text_if(row[8]);
  snapshot.artifact_id = uuid_if(row[9]);
  snapshot.reason = text_of(row[10]);
  snapshot.created_at = time_of(row[11]);
  return snapshot;
}

#define MUNIMENT_MANIFEST_COLUMNS \
  "manifest_id, run_id, base_id, salt, hash, size_bytes, manifest, " MUNIMENT_MICROS("created_at") ", seq"

#define MUNIMENT_SNAPSHOT_COLUMNS                                                                                      \
  "run_no, seq, run_seq, event_seq, salt, hash, state_hash, size_bytes, state, artifact_id, reason, " MUNIMENT_MICROS( \
      "created_at")

std::optional<ArtifactRow> first_artifact(const pqxx::result& rows) {
  if (rows.empty()) return {};
  return artifact_of(rows[0]);
}

// Large artifacts have pieces, whose root is stored only in their event.
void find_pieces(Reader::Impl& impl, std::vector<ArtifactRow>& artifacts) {
  for (ArtifactRow& artifact : artifacts) {
    if (!has_pieces(artifact.size_bytes)) continue;
    const pqxx::result rows = query(impl.connection, "artifact_pieces",
                                    "SELECT " MUNIMENT_EVENT_COLUMNS
                                    " FROM event WHERE log_no = $1 AND seq = $2 AND type = 'artifact.stored'",
                                    impl.params().integer(artifact.seq));
    std::vector<events::Event> events = rows_of(rows, event_of);
    impl.fill(events);
    const auto body =
        events.empty() || !events.front().body ? std::nullopt : std::optional(json::parse(*events.front().body));
    if (body && *body) artifact.pieces_root = hash_from_hex((*body)->root()["pieces_root"].string_or(""));
  }
}

}  // namespace

std::vector<ArtifactRow> artifacts_by_id(Reader::Impl& impl, const std::vector<Uuid>& artifact_ids) {
  auto artifacts = rows_of(query(impl.connection, "artifacts_by_id",
                                 "SELECT " MUNIMENT_ARTIFACT_COLUMNS
                                 " FROM artifact WHERE log_no = $1 AND artifact_id = ANY($2::uuid[]) AND seq < $3",
                                 impl.params().uuids(artifact_ids).integer(impl.place.size)),
                           artifact_of);
  find_pieces(impl, artifacts);
  return artifacts;
}

Result<std::optional<ArtifactRow>> Reader::artifact(const Uuid& artifact_id) {
  return held_rows(*this, *impl_,
                   guarded(impl_->connection, "reading an artifact's row",
                           [&] {
                             auto found =
                                 rows_of(query(impl_->connection, "artifact",
                                               "SELECT " MUNIMENT_ARTIFACT_COLUMNS
                                               " FROM artifact WHERE log_no = $1 AND artifact_id = $2 AND seq < $3",
                                               impl_->params().uuid(artifact_id).integer(impl_->place.size)),
                                         artifact_of);
                             find_pieces(*impl_, found);
                             return found.empty() ? std::nullopt : std::optional(std::move(found.front()));
                           }),
                   hold_artifacts);
}

Result<std::vector<ArtifactRow>> Reader::artifacts(const std::vector<Uuid>& artifact_ids) {
  return held_rows(
      *this, *impl_,
      guarded(impl_->connection, "reading artifacts' rows", [&] { return artifacts_by_id(*impl_, artifact_ids); }),
      hold_artifacts);
}

Result<std::vector<ArtifactRow>> Reader::artifacts(std::string_view run_id, std::optional<std::string> step_id,
                                                   std::optional<Uuid> after, std::size_t limit) {
  return held_rows(
      *this, *impl_,
      guarded(impl_->connection, "listing artifacts",
              [&] {
                std::vector<ArtifactRow> artifacts;
                Params params = impl_->params();
                params.text(run_id)
                    .text_or_null(step_id)
                    .uuid_or_null(after)
                    .integer(static_cast<std::int64_t>(limit))
                    .integer(impl_->place.size);
                for (const pqxx::row& row :
                     query(impl_->connection, "artifacts",
                           "SELECT " MUNIMENT_ARTIFACT_COLUMNS " FROM artifact WHERE log_no = $1 AND run_id = $2"
                           " AND ($3::text IS NULL OR step_id = $3)"
                           " AND ($4::uuid IS NULL OR artifact_id > $4) AND seq < $6 ORDER BY artifact_id LIMIT $5",
                           params)) {
                  artifacts.push_back(artifact_of(row));
                }
                return artifacts;
              }),
      hold_artifacts);
}

Result<std::optional<ArtifactRow>> Reader::artifact_with_hash(std::string_view run_id, std::string_view step_id,
                                                              const Hash& hash) {
  return held_rows(*this, *impl_,
                   guarded(impl_->connection, "looking for an artifact by its hash",
                           [&] {
                             return first_artifact(
                                 query(impl_->connection, "artifact_with_hash",
                                       "SELECT " MUNIMENT_ARTIFACT_COLUMNS
                                       " FROM artifact WHERE log_no = $1 AND run_id = $2 AND step_id = $3 AND hash = $4"
                                       " ORDER BY seq LIMIT 1",
                                       impl_->params().text(run_id).text(step_id).text(to_hex(hash))));
                           }),
                   hold_artifacts);
}

Result<std::optional<ManifestRow>> Reader::manifest(const Uuid& manifest_id) {
  return held_rows(*this, *impl_,
                   guarded(impl_->connection, "reading a manifest",
                           [&]() -> std::optional<ManifestRow> {
                             const pqxx::result rows =
                                 query(impl_->connection, "manifest",
                                       "SELECT " MUNIMENT_MANIFEST_COLUMNS
                                       " FROM manifest "
                                       "WHERE log_no = $1 AND manifest_id = $2 AND seq < $3",
                                       impl_->params().uuid(manifest_id).integer(impl_->place.size));
                             if (rows.empty()) return {};
                             return manifest_of(rows[0]);
                           }),
                   hold_manifests);
}

Result<std::vector<SnapshotRow>> Reader::snapshots(std::int64_t run_no, std::optional<std::int64_t> at_most_seq,
                                                   std::size_t limit) {
  return guarded(impl_->connection, "reading snapshots", [&] {
    std::vector<SnapshotRow> snapshots;
    for (const pqxx::row& row :
         query(impl_->connection, "snapshots",
               "SELECT " MUNIMENT_SNAPSHOT_COLUMNS " FROM snapshot WHERE log_no = $1 AND run_no = $2 AND seq <= $3"
               " ORDER BY seq DESC LIMIT $4",
               impl_->params()
                   .integer(run_no)
                   .integer(std::min(at_most_seq.value_or(INT64_MAX), impl_->place.size - 1))
                   .integer(static_cast<std::int64_t>(limit)))) {
      snapshots.push_back(snapshot_of(row));
    }
    return snapshots;
  });
}

Result<std::vector<ArtifactRow>> Reader::artifacts_in(std::string_view run_id, SeqSpan span, std::size_t limit) {
  return rows_in(*impl_, "artifacts_in",
                 "SELECT " MUNIMENT_ARTIFACT_COLUMNS
                 " FROM artifact WHERE log_no = $1 AND run_id = $2" MUNIMENT_IN_SPAN("seq"),
                 impl_->params().text(run_id), span, limit, artifact_of);
}

Result<std::vector<ManifestRow>> Reader::manifests_in(std::string_view run_id, SeqSpan span, std::size_t limit) {
  return rows_in(*impl_, "manifests_in",
                 "SELECT " MUNIMENT_MANIFEST_COLUMNS
                 " FROM manifest WHERE log_no = $1 AND run_id = $2" MUNIMENT_IN_SPAN("seq"),
                 impl_->params().text(run_id), span, limit, manifest_of);
}

Result<std::vector<SnapshotRow>> Reader::snapshots_in(std::int64_t run_no, SeqSpan span, std::size_t limit) {
  return rows_in(*impl_, "snapshots_in",
                 "SELECT " MUNIMENT_SNAPSHOT_COLUMNS
                 " FROM snapshot WHERE log_no = $1 AND run_no = $2" MUNIMENT_IN_SPAN("event_seq"),
                 impl_->params().integer(run_no), span, limit, snapshot_of);
}

}  // namespace muniment::store
