// Tools, resources and prompts that a program offers in addition to those of Muniment. The daemon that the conformance
// suite of MCP tests (tests/mcp/conformance_fixture.cpp) has some; munimentd has none.
#pragma once

#include <string_view>

#include "base/json/json.hpp"
#include "mcp/call.hpp"

namespace muniment::mcp {

class Extension {
 public:
  virtual ~Extension() = default;
  // They append to an open array.
  virtual void write_tools(json::Writer& list) const = 0;
  virtual void write_resources(json::Writer& list) const = 0;
  virtual void write_templates(json::Writer& list) const = 0;
  virtual void write_prompts(json::Writer& list) const = 0;
  // They return whether the name belongs to the extension; if so, the call is answered.
  virtual bool call_tool(const CallPtr& call, std::string_view name) const = 0;
  virtual bool read_resource(const CallPtr& call, std::string_view uri) const = 0;
  virtual bool get_prompt(const CallPtr& call, std::string_view name) const = 0;
  // Returns whether subscriptions to the resource are accepted; it never changes.
  virtual bool is_resource(std::string_view uri) const = 0;
};

}  // namespace muniment::mcp
