// The tools that a host's model may call: one table, in the order in which they are offered.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"
#include "base/result.hpp"

namespace muniment::mcp {

struct ServerOptions;

// Effects of a tool, as a host may show them before it asks its user.
struct Hints {
  bool read_only = false;
  bool destructive = false;
  bool idempotent = false;
};

// Turns a tool's arguments into the parameters of its native method. Errors: invalid_argument.
using Adapt = Result<std::string> (*)(const json::Value& arguments, std::string_view run_id);
// A short text for the model, of the method's result.
using Say = std::string (*)(const json::Value& result);

struct Tool {
  std::string_view name;
  std::string_view toolset{};  // empty: the default list
  std::string_view title;
  std::string_view description;
  std::string_view method;  // the native method: its schema is the tool's, but for what `input` says
  Hints hints{};
  Say say;
  Adapt adapt = nullptr;             // nullptr: the arguments are the parameters
  std::string (*input)() = nullptr;  // the input schema, where it is not the method's
  bool output = true;                // its results fit the method's schema
};

// The tools that a server offers, with the text of tools/list.
struct ToolList {
  std::vector<const Tool*> tools;
  std::string list;  // the items of tools/list, a JSON array

  const Tool* find(std::string_view name) const;  // nullptr: none
};

std::span<const Tool> tool_table();
ToolList offered_tools(const ServerOptions& options);
// Errors: invalid_argument for a toolset that there is not; `whose` names the setting.
Status check_toolsets(const std::vector<std::string>& names, std::string_view whose = "mcp_toolsets");

// A native method's schema as one JSON Schema that refers to no other file and knows no format but JSON Schema's.
// `part` is "params" or "result"; `_meta` is left out. The run, which a session fills in, is not
// required of params.
std::string plain_schema(std::string_view method, std::string_view part);

}  // namespace muniment::mcp
