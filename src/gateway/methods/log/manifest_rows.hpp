// What the methods that record a manifest share: its row, and the event that says so.
#pragma once

#include <string>

#include "base/ids.hpp"
#include "store/append/rows.hpp"

namespace muniment::gateway::methods {

// With a salt of its own. `text` is its JSON.
store::ManifestRow make_manifest(const Uuid& manifest_id, const std::string& run_id, std::string text);

// The body of its manifest.recorded.
std::string manifest_recorded_body(const store::ManifestRow& row);

}  // namespace muniment::gateway::methods
