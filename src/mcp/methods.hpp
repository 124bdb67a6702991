// The served MCP methods, one row each, with the revisions that have it.
#pragma once

#include <optional>
#include <string_view>

#include "mcp/call.hpp"

namespace muniment::mcp {

struct Method {
  std::string_view name;
  void (*function)(const CallPtr& call);
  bool initialized = true;  // in 2025-11-25
  bool stateless = true;    // in 2026-07-28
  bool always = false;      // also of a server that offers only tools
};

const Method* find_method(std::string_view name, Revision revision);  // returns nullptr for an unknown method

// Returns whether `version` of the protocol is served: initialize answers with it, or every request may name it.
bool is_served(std::string_view version);
// A request is stateless if its _meta names that revision, or if it is server/discover.
Revision revision_of(const Message& message);
// Checks that a stateless request's _meta is complete.
std::optional<Failure> check_meta(const Message& message);
// Checks a request before its method is looked up.
std::optional<Failure> check_revision(Session& session, const Message& message, Revision revision);

// Answers the call with a handle and lets it continue (tools.cpp).
void hand_over(const CallPtr& call);

// methods.cpp
void initialize(const CallPtr& call);
void ping(const CallPtr& call);
void discover(const CallPtr& call);
void set_log_level(const CallPtr& call);
// tool_call.cpp
void list_tools(const CallPtr& call);
void call_tool(const CallPtr& call);
// resources.cpp
void list_resources(const CallPtr& call);
void list_resource_templates(const CallPtr& call);
void read_resource(const CallPtr& call);
// subscriptions.cpp
void subscribe(const CallPtr& call);
void unsubscribe(const CallPtr& call);
void listen(const CallPtr& call);
// prompts.cpp
void list_prompts(const CallPtr& call);
void get_prompt(const CallPtr& call);
// completion.cpp
void complete(const CallPtr& call);

}  // namespace muniment::mcp
