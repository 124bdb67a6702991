#include "store/files/artifact_row.hpp"

namespace muniment::store {

ArtifactRow artifact_row(const StoredFile& file, std::string_view run_id, std::string_view step_id,
                         std::string_view mime_type, std::string_view metadata) {
  ArtifactRow row;
  row.artifact_id = file.artifact_id;
  row.run_id = run_id;
  row.step_id = step_id;
  row.path = file.path;
  row.hash = file.hash;
  row.mime_type = mime_type;
  row.size_bytes = file.size_bytes;
  row.pieces_root = file.pieces_root;
  row.metadata = metadata.empty() ? "{}" : std::string(metadata);
  return row;
}

StoredFile file_of(const ArtifactRow& row) {
  return {row.artifact_id, row.path, row.hash, row.size_bytes, row.pieces_root};
}

void write_artifact_fields(json::Writer& out, const ArtifactRow& row) {
  out.member("artifact_id", row.artifact_id.text())
      .member("run_id", row.run_id)
      .member("step_id", row.step_id)
      .member("path", row.path)
      .member("hash", to_hex(row.hash))
      .member("mime_type", row.mime_type)
      .member("size_bytes", row.size_bytes)
      .raw_member("metadata", row.metadata);
}

std::string artifact_stored_body(const ArtifactRow& row) {
  json::Writer out;
  out.begin_object();
  write_artifact_fields(out, row);
  if (row.pieces_root) out.member("pieces_root", to_hex(*row.pieces_root));
  return out.end_object().text();
}

}  // namespace muniment::store
