// What a stored file becomes in the log: the row of `artifact` and the body of artifact.stored.
#pragma once

#include <string>
#include <string_view>

#include "base/json/json.hpp"
#include "store/append/rows.hpp"
#include "store/files/artifact_files.hpp"

namespace muniment::store {

// `metadata`: a JSON object's text, or empty.
ArtifactRow artifact_row(const StoredFile& file, std::string_view run_id, std::string_view step_id,
                         std::string_view mime_type, std::string_view metadata);

// What the log records of its file.
StoredFile file_of(const ArtifactRow& row);

// What the client stored; when and at which seq is not among it.
void write_artifact_fields(json::Writer& out, const ArtifactRow& row);

// The fields, as an object.
std::string artifact_stored_body(const ArtifactRow& row);

}  // namespace muniment::store
