// Resources of MCP: pointers (docs/protocol.md) as URIs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muniment::mcp {

// Parameters of event.subscribe that follow the resource; empty text for one that never changes. Nothing: no such
// resource.
std::optional<std::string> follow_params(std::string_view uri);

}  // namespace muniment::mcp
