// Resources of MCP: pointers (docs/protocol.md) as URIs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muniment::mcp {

// Returns the parameters of event.subscribe that follow the resource; empty text for one that never changes; nullopt
// for an unknown resource.
std::optional<std::string> follow_params(std::string_view uri);

}  // namespace muniment::mcp
