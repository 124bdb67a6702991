// Makes the row and the event of a manifest, for the methods that record one.
#pragma once

#include <string>

#include "base/ids.hpp"
#include "store/append/rows.hpp"

namespace muniment::gateway::methods {

// Makes a row with a new salt. `text` is the manifest's JSON.
store::ManifestRow make_manifest(const Uuid& manifest_id, const std::string& run_id, std::string text);

// Returns the body of the row's manifest.recorded.
std::string manifest_recorded_body(const store::ManifestRow& row);

}  // namespace muniment::gateway::methods
