// Bodies too large for one request. The daemon moves long content parts of an append into artifacts by itself
// (spill); what would not fit the request's line is moved before.
#pragma once

#include <string>

#include "base/result.hpp"
#include "cli/import/source.hpp"

namespace muniment::cli {

// A body over this is shrunk before it is sent: with what stands around it, it fits a line.
inline constexpr std::size_t sent_body_bytes_max = 256 * 1024;

// The event's body with every long text of it stored by `sink` and replaced by a reference, as the daemon's
// spill would. Errors: the sink's; invalid_argument for a body that is no JSON; too_large where even so it is.
Result<std::string> shrink_body(ImportSink& sink, const std::string& run_id, const ImportedEvent& event);

}  // namespace muniment::cli
