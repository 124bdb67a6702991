// Builds the records of a stored file: its row of `artifact` and the body of artifact.stored.
#pragma once

#include <string>
#include <string_view>

#include "base/json/json.hpp"
#include "store/append/rows.hpp"
#include "store/files/artifact_files.hpp"

namespace muniment::store {

// `metadata` is the text of a JSON object, or empty.
ArtifactRow artifact_row(const StoredFile& file, std::string_view run_id, std::string_view step_id,
                         std::string_view mime_type, std::string_view metadata);

// Returns the file of a row.
StoredFile file_of(const ArtifactRow& row);

// Writes the fields that the client supplied, without time and seq.
void write_artifact_fields(json::Writer& out, const ArtifactRow& row);

// Returns the fields as a JSON object.
std::string artifact_stored_body(const ArtifactRow& row);

}  // namespace muniment::store
