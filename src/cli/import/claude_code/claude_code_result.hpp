// Extracts the status and text of a tool result from a line of a Claude Code session.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"

namespace muniment::cli {

struct ToolResult {
  std::string_view status = "ok";  // status of tool.returned
  std::optional<std::int64_t> exit_code;
  std::optional<std::string_view> denied_by;  // "human", or "code" if a rule or a missing answer denied the call
};

// `line` is the whole line, `block` its tool_result.
ToolResult judge_result(const json::Value& line, const json::Value& block);

// Returns the text of a message or of its first text block.
std::string first_text(const json::Value& content);

// Returns the texts in `content` as parts; appends the JSON of other blocks to `others`.
void write_result_parts(json::Writer& body, const json::Value& content, std::vector<std::string>& others);

}  // namespace muniment::cli
