// The keys http_* of the configuration, held together: where MCP is served over HTTP, and to whom.
#pragma once

#include <optional>

#include "base/config/config.hpp"
#include "daemon/mcp/mcp_http.hpp"

namespace muniment::daemon {

// nullopt: nowhere. Makes the token's file where none is named and none is there. `open` asks clients for no token (the
// conformance suite). Errors: invalid_argument, with what to write instead; those of reading the token's file.
Result<std::optional<McpHttpOptions>> mcp_http_options(const Config& config, bool open);

}  // namespace muniment::daemon
