// Tools, resources and prompts named test_*, which the conformance suite of MCP calls. They exist only with munimentd
// --conformance-fixture.
#pragma once

#include <string_view>

#include "base/json/json.hpp"
#include "mcp/call.hpp"

namespace muniment::mcp::fixture {

void write_tools(json::Writer& list);
void write_resources(json::Writer& list);
void write_templates(json::Writer& list);
void write_prompts(json::Writer& list);
// Returns whether the name belongs to the fixture; if so, the call is answered.
bool call_tool(const CallPtr& call, std::string_view name);
bool read_resource(const CallPtr& call, std::string_view uri);
bool is_resource(std::string_view uri);  // accepts subscriptions, but never changes
bool get_prompt(const CallPtr& call, std::string_view name);

}  // namespace muniment::mcp::fixture
