// Checks the http_* settings: the address for MCP over HTTP, and its clients.
#pragma once

#include <optional>

#include "base/config/config.hpp"
#include "daemon/mcp/mcp_http.hpp"

namespace muniment::daemon {

// Returns nullopt if MCP over HTTP is off. Creates the token's file if none is named and none exists. `open` requires
// no token (the conformance suite). Errors: invalid_argument with the setting to use instead; those of reading the
// token's file.
Result<std::optional<McpHttpOptions>> mcp_http_options(const Config& config, bool open);

}  // namespace muniment::daemon
