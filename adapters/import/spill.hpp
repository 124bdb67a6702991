// Shrinks bodies that are too large for one request. The daemon moves long content parts of an append to artifacts
// itself (spill); content that does not fit a request line is moved here first.
#pragma once

#include <string>
#include <string_view>

#include "adapters/import/source.hpp"
#include "base/result.hpp"

namespace muniment::cli {

// A larger body is shrunk before it is sent; the limit leaves room for the rest of the request line.
inline constexpr std::size_t sent_body_bytes_max = 256 * 1024;

// Returns whether the daemon could not record the body: it is too large, or remains too large without its long texts.
bool must_shrink(std::string_view body);

// Returns the body with every long text stored by `sink` and replaced by a reference, like the daemon's spill. Errors:
// those of the sink; invalid_argument if the body is not JSON; too_large if the result is still too large.
Result<std::string> shrink_body(ImportSink& sink, const std::string& run_id, const ImportedEvent& event);

}  // namespace muniment::cli
