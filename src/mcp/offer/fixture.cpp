#include "mcp/offer/fixture.hpp"

namespace muniment::mcp::fixture {
void write_tools(json::Writer&) {}
void write_resources(json::Writer&) {}
void write_templates(json::Writer&) {}
void write_prompts(json::Writer&) {}
bool call_tool(const CallPtr&, std::string_view) { return false; }
bool read_resource(const CallPtr&, std::string_view) { return false; }
bool get_prompt(const CallPtr&, std::string_view) { return false; }
}  // namespace muniment::mcp::fixture
