// What the artifact methods and the spill share: what may be said of an artifact, and its JSON.
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

// "artifact://<run>/<artifact_id>"
std::string artifact_pointer(std::string_view run_id, const Uuid& artifact_id);

// A type and a subtype of RFC 6838, with parameters or without; at most 256 bytes.
Status check_mime_type(std::string_view mime_type);

// An object of at most 8 KiB whose jsonb text fits its CHECK as well (jsonb writes 1e300 in full).
Status check_metadata(const json::Value& metadata);

// The file of this row could not be read: where it is there and is wrong, or is gone, that is damage, and `error` as it
// is told.
Error artifact_damage(const store::ArtifactRow& row, Error error);

// What artifact.put, .stat and .list say of it.
void write_artifact(json::Writer& out, const store::ArtifactRow& row);

}  // namespace muniment::gateway
