// The table of tools that a host's model may call, in the order in which they are offered.
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

// Effects of a tool, which a host may show before it asks its user.
struct Hints {
  bool read_only = false;
  bool destructive = false;
  bool idempotent = false;
};

// Data of the session that its calls get in addition to their arguments.
struct Setting {
  std::string_view run_id{};  // its run; empty: none
  bool review = false;        // what it remembers waits for review
};

// Converts a tool's arguments to the parameters of its native method. Errors: invalid_argument.
using Adapt = Result<std::string> (*)(const json::Value& arguments, const Setting& setting);
// Returns a short text for the model from the method's result.
using Say = std::string (*)(const json::Value& result);

struct Tool {
  std::string_view name;
  std::string_view toolset{};  // empty: the default list
  std::string_view title;
  std::string_view description;
  std::string_view method;  // the native method, whose schema is the tool's unless `input` is set
  Hints hints{};
  Say say;
  Adapt adapt = nullptr;             // nullptr: the arguments are the parameters
  std::string (*input)() = nullptr;  // input schema if it differs from the method's
  // Arguments that tools/list names, separated by blanks. The others are accepted too, but models choose among few more
  // surely, and read each of them in every conversation. Empty: all of them, and the schema of the results.
  std::string_view shown{};
};

// The tools that a server offers, with the text of tools/list.
struct ToolList {
  std::vector<const Tool*> tools;
  std::string list;  // the items of tools/list, a JSON array

  const Tool* find(std::string_view name) const;  // returns nullptr for an unknown name
};

std::span<const Tool> tool_table();
// Returns the schema of all arguments of a tool.
json::Value input_schema(const Tool& tool);
// Returns the part of it that tools/list shows: the arguments `shown`, without limits.
std::string shown_schema(const Tool& tool);
ToolList offered_tools(const ServerOptions& options);
// Errors: invalid_argument for an unknown toolset; `whose` names the setting.
Status check_toolsets(const std::vector<std::string>& names, std::string_view whose = "mcp_toolsets");

// Returns a native method's schema as one JSON Schema without references to other files and with standard formats only.
// `part` is "params" or "result"; `_meta` is omitted. The run, which a session supplies, is optional in params.
std::string plain_schema(std::string_view method, std::string_view part);

}  // namespace muniment::mcp
