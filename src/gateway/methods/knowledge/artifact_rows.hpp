// Validates artifact fields and writes artifacts as JSON, for the artifact methods and the spill.
#pragma once

#include <string>
#include <string_view>

#include "base/json/json.hpp"
#include "base/result.hpp"
#include "gateway/call.hpp"
#include "store/append/rows.hpp"
#include "store/files/artifact_row.hpp"

namespace muniment::gateway {

inline constexpr std::string_view default_step = "main";

// Returns "artifact://<run>/<artifact_id>".
std::string artifact_pointer(std::string_view run_id, const Uuid& artifact_id);

// Requires a type and subtype of RFC 6838, with or without parameters, of at most 256 bytes. Errors: invalid_argument.
Status check_mime_type(std::string_view mime_type);

// Requires an object of at most 8 KiB whose jsonb text also fits its CHECK (jsonb expands 1e300). Errors:
// invalid_argument, too_large.
Status check_metadata(const json::Value& metadata);

// Returns the error for a row whose file could not be read: corrupt if the file is missing or wrong, otherwise `error`.
Error artifact_damage(const store::ArtifactRow& row, Error error);

// Writes the members that artifact.put, .stat and .list return for a row.
void write_artifact(json::Writer& out, const store::ArtifactRow& row);

}  // namespace muniment::gateway
